"""The application: addresses, and what goes wrong in words."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from archwright.errors import BadInput, Failed
from archwright.web.api import Api, BadRequest, whole_number
from archwright.web.folder import NotFound, ServedFolder
from archwright.web.jobs import Busy, Jobs
from archwright.web.live import LiveRuns
from archwright.web.models import ModelProcess
from archwright.web.pages import Pages, bundle
from archwright.web.security import Access, Guard
from archwright.web.starting import Starter, form_options

MOST_COMPARED = 8
FOREVER = "public, max-age=31536000, immutable"
Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(folder: ServedFolder, access: Access, *, start_options: Sequence[str] | None = None) -> Starlette:
    """The page of one folder; `start_options` are the options of the form that starts runs, None: there is none."""
    live, jobs, models = LiveRuns(), Jobs(), ModelProcess()
    allow_start = start_options is not None
    pages = Pages(folder, live, allow_start, form_options(start_options) if start_options else ())
    api = Api(pages, live, jobs, models)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        api.close_streams()
        models.close()
        jobs.close()

    routes = [
        Route("/", html(lambda request: pages.runs())),
        Route("/run/{name:path}", html(lambda request: pages.run(request.path_params["name"]))),
        Route("/network/{trial:int}/{name:path}", html(lambda request: network_page(pages, request))),
        Route("/compare", html(lambda request: compare_page(pages, request))),
        Route("/proxies", html(lambda request: pages.proxies())),
        Route("/proxies/{name:path}", html(lambda request: pages.proxy_document(request.path_params["name"]))),
        Route("/architectures", html(lambda request: pages.architectures())),
        Route("/architecture/{name:path}", html(lambda request: pages.architecture(request.path_params["name"]))),
        Route("/assets/{version}/{name}", asset),
        Route("/download/{export}/{name:path}", api.download),
        Route("/api/runs", api.runs),
        Route("/api/run/{name:path}", api.run),
        Route("/api/events", api.all_events),
        Route("/api/events/{name:path}", api.run_events),
        Route("/api/select/{name:path}", api.select),
        Route("/api/network/{trial:int}/{name:path}", api.network),
        Route("/api/inspect/{trial:int}/{name:path}", api.inspect),
        Route("/api/try/{trial:int}/{name:path}", api.try_text, methods=["POST"]),
        Route("/api/export/{trial:int}/{name:path}", api.export, methods=["POST"]),
        Route("/api/jobs", api.all_jobs),
        Route("/api/jobs/{id}", api.job),
    ]
    if start_options is not None:
        starter = Starter(api, start_options)
        routes += [
            Route("/start", html(lambda request: pages.start())),
            Route("/api/command", starter.command, methods=["POST"]),
            Route("/api/start", starter.start, methods=["POST"]),
            Route("/api/resume/{name:path}", starter.resume, methods=["POST"]),
            Route("/api/stop/{name:path}", starter.stop, methods=["POST"]),
        ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, access=access)],
        exception_handlers=failure_handlers(pages),
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # an address is there or not
    app.state.api = api
    return app


def html(render: Callable[[Request], str]) -> Endpoint:
    """A page, rendered in a thread: runs are read from disk."""

    async def endpoint(request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(render, request))

    return endpoint


def network_page(pages: Pages, request: Request) -> str:
    page = pages.network(request.path_params["name"], request.path_params["trial"])
    if page is None:
        raise NotFound("sub-network")
    return page


def compare_page(pages: Pages, request: Request) -> str:
    names = list(dict.fromkeys(request.query_params.getlist("run")))
    asked = list(dict.fromkeys(request.query_params.getlist("network")))
    if max(len(names), len(asked)) > MOST_COMPARED:
        raise BadRequest(f"at most {MOST_COMPARED} runs and as many sub-networks can stand side by side; tick fewer.")
    networks = []
    for words in asked:
        trial, _, name = words.partition(":")
        if not name:
            raise BadRequest("network must be TRIAL:RUN, such as 12:first.")
        networks.append((whole_number(trial, "network"), name))
    return pages.compare(names, networks)


async def asset(request: Request) -> Response:
    found = bundle(request.path_params["name"])
    if found is None:
        raise NotFound("asset")
    text, kind = found
    return Response(text, media_type=kind, headers={"cache-control": FOREVER})


def failure_handlers(pages: Pages) -> dict[Any, Any]:
    """Every kind of failure as a sentence, in JSON below /api/ and as a page elsewhere."""

    def handler(status: int, title: str, say: Callable[[Exception], str]) -> Any:
        async def handle(request: Request, error: Exception) -> Response:
            words = say(error)
            if request.url.path.startswith("/api/"):
                return JSONResponse({"error": words}, status)
            return HTMLResponse(await run_in_threadpool(pages.message, title, words), status)

        return handle

    def own_words(error: Exception) -> str:
        return str(error).replace(f"{pages.folder.root}/", "")

    def http_words(error: Exception) -> str:
        assert isinstance(error, HTTPException)
        return {404: "Nothing is here.", 405: "This address does not take such requests."}.get(
            error.status_code, error.detail
        )

    return {
        NotFound: handler(404, "Not found", lambda error: "No such run, sub-network or document is below this folder."),
        BadRequest: handler(400, "Not understood", own_words),
        BadInput: handler(400, "Not possible", own_words),
        Failed: handler(500, "Failed", own_words),
        Busy: handler(429, "Busy", lambda error: f"{error}; wait for one to end.".capitalize()),
        HTTPException: handler(404, "Not found", http_words),
        Exception: handler(500, "Failed", lambda error: f"This could not be shown ({type(error).__name__})."),
    }
