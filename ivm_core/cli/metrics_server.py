"""An OpenMetrics endpoint of a flow: `GET /metrics`, from its log alone."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ivm_core.api.metrics import read_metrics
from ivm_core.model.errors import IvmError, UserError

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class MetricsServer(ThreadingHTTPServer):
    """Answers until `shutdown`; every answer reads the log anew."""

    daemon_threads = True

    def __init__(self, flow: str, port: int, host: str = "127.0.0.1") -> None:
        """Listen; a port that can't be had is a `UserError`. Port 0 takes a free one."""
        self.flow = flow
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UserError(
                f"port {port} of {host} can't be had: {error}", "--serve", "give another port"
            ) from error

    @property
    def url(self) -> str:
        """Where it answers."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/metrics"


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer

    def do_GET(self) -> None:
        """The metrics, or 404; 503 with the reason while the flow can't be read."""
        if self.path.partition("?")[0] not in ("/metrics", "/metrics/"):
            self._answer(404, "text/plain; charset=utf-8", "there is /metrics\n")
            return
        try:
            text = read_metrics(self.server.flow).open_metrics()
        except IvmError as error:
            self._answer(503, "text/plain; charset=utf-8", f"{error}\n")
            return
        self._answer(200, CONTENT_TYPE, text)

    def _answer(self, code: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: collectors ask often."""
