"""A TCP relay before the server, which a test can cut: to the client, the server is dead at that moment."""

import socket
import threading


class Proxy:
    def __init__(self, host, port):
        self.target = (host, port)
        self.lock = threading.Lock()
        self.sockets = []
        self.listener = None
        self.port = 0
        # After this many bytes from the client, the connection is cut; None for never.
        self.cut_after_bytes = None
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Listens, after a stop on the same port again."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        self.listener = listener
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def stop(self):
        """Refuses new connections and breaks those there are."""
        # Wakes the thread in `accept`, which a plain close would leave there, still listening.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            broken, self.sockets = self.sockets, []
        for one in broken:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                return
            with self.lock:
                self.sockets += [client, server]
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, target, from_client):
        passed = 0
        try:
            while data := source.recv(65536):
                passed += len(data)
                if from_client and self.cut_after_bytes is not None and passed > self.cut_after_bytes:
                    break
                target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
