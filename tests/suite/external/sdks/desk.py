"""A help desk that answers `{"message": …}` with `{"answer": …}`; the programs beside it differ in their SDK."""

import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

PROMPT = "Answer from the documents, which search_docs searches."
DOCUMENT = "Orders are shipped within 2 working days."


def serve(answer):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = json.dumps({"answer": answer(asked["message"])}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_):
            pass

    HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
