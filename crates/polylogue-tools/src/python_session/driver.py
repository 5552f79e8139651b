# Keeps one namespace, and runs in it what it is told to, line by line of JSON. See ../python_session.rs.
import ast, base64, builtins, codecs, io, json, linecache, os, queue, signal, sys, threading, traceback, types

sys.dont_write_bytecode = True
sys.path.insert(0, "")
LONGEST = 1 << 18  # characters of a result or of an error
LONGEST_PICTURE = 4 << 20  # characters of base 64


class Wire:
    """Where messages are sent. The standard streams are the code's, and copies of this process get neither end.

    Everything but text carries the key of its call, which comes with the code: what is left of an earlier call does not know it.
    """

    def __init__(self):
        self.out, self.source = os.dup(1), os.fdopen(os.dup(0), encoding="utf-8", newline="\n")
        self.lock, self.run, self.key = threading.Lock(), 0, None
        os.register_at_fork(after_in_child=self.close)

    def close(self):
        for number in (self.out, self.source.fileno()):
            os.close(number)

    def tell(self, **event):
        # On a line of its own, whatever else was written there.
        line = b"\n" + json.dumps({"key": self.key, **event}).encode() + b"\n"
        with self.lock:
            while line:
                line = line[os.write(self.out, line):]


class Stream:
    """What is written to the standard streams, by the code or by programs that it starts, in the order of writing."""

    def __init__(self, wire):
        self.wire = wire
        self.mark, self.passed = b"\0" + os.urandom(16).hex().encode() + b"\0", threading.Event()
        self.source, self.end = os.pipe()
        for number in (1, 2):
            os.dup2(self.end, number)
        threading.Thread(target=self.relay, daemon=True).start()

    def relay(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        kept = b""
        while True:
            kept += os.read(self.source, 1 << 15)
            while self.mark in kept:
                before, kept = kept.split(self.mark, 1)
                self.tell(decoder.decode(before, True))
                decoder.reset()
                self.passed.set()
            # What may be the beginning of a mark.
            begun = max((n for n in range(len(self.mark)) if kept.endswith(self.mark[:n])), default=0)
            whole = len(kept) - begun
            self.tell(decoder.decode(kept[:whole]))
            kept = kept[whole:]

    def tell(self, text):
        if text:
            self.wire.tell(text=text)

    def catch_up(self):
        """Waits until all that was written so far is told."""
        self.passed.clear()
        os.write(self.end, self.mark)
        self.passed.wait(5)


class Session:
    def __init__(self):
        self.wire, self.asked, self.is_running = Wire(), queue.Queue(), False
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        self.stream = Stream(self.wire)
        sys.stdin = open(0, closefd=False)
        # Unbuffered, so that what programs write that the code starts comes in between.
        raw = [open(number, "wb", buffering=0, closefd=False) for number in (1, 2)]
        self.outputs = [io.TextIOWrapper(file, "utf-8", "backslashreplace", write_through=True) for file in raw]
        main = types.ModuleType("__main__")
        main.__builtins__ = builtins
        sys.modules["__main__"], self.names = main, main.__dict__
        self.thread, self.process = threading.get_ident(), os.getpid()
        signal.signal(signal.SIGINT, self.interrupted)
        threading.Thread(target=self.listen, daemon=True).start()

    def interrupted(self, *_):
        if self.is_running:
            self.is_running = False
            raise KeyboardInterrupt

    def listen(self):
        for line in self.wire.source:
            request = json.loads(line)
            if "code" in request:
                self.asked.put(request)
            elif request.get("interrupt") == self.wire.run:
                signal.pthread_kill(self.thread, signal.SIGINT)
        os._exit(0)

    def serve(self):
        self.wire.tell(ready=True)
        while True:
            request = self.asked.get()
            self.wire.run, self.wire.key = request["run"], request["key"]
            sys.stdout, sys.stderr = self.outputs
            error, value = self.run(request["code"], "<cell %d>" % request["run"])
            if os.getpid() != self.process:
                # A copy that the code made and forgot.
                os._exit(0)
            for output in self.outputs:
                output.flush()
            self.stream.catch_up()
            self.show(value)
            if error:
                self.wire.tell(error=error[-LONGEST:])
            self.wire.tell(done=not error)

    def run(self, code, name):
        """What went wrong, and what the last expression is worth: as a text, and as a picture."""
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        try:
            try:
                self.is_running = True
                tree = ast.parse(code, name)
                last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, name, "exec"), self.names)
                shown = None
                if last:
                    value = eval(compile(ast.Expression(last.value), name, "eval"), self.names)
                    if value is not None:
                        self.names["_"] = value
                        shown = (self.picture(value), repr(value))
                return None, (shown, self.figures())
            finally:
                self.is_running = False
        except BaseException as error:
            return self.told(error), None

    @staticmethod
    def picture(value):
        if isinstance(value, type) or not hasattr(value, "_repr_png_"):
            return None
        picture = value._repr_png_()
        return picture[0] if isinstance(picture, tuple) else picture

    @staticmethod
    def figures():
        """All that was plotted and not yet shown."""
        plots = sys.modules.get("matplotlib.pyplot")
        pictures = []
        for number in plots.get_fignums() if plots else ():
            file = io.BytesIO()
            plots.figure(number).savefig(file, format="png", bbox_inches="tight")
            pictures.append(file.getvalue())
        if pictures:
            plots.close("all")
        return pictures

    def show(self, value):
        shown, figures = value or (None, [])
        for picture in ([shown[0]] if shown else []) + figures:
            if picture:
                text = base64.b64encode(bytes(picture)).decode()
                # One that is too large is counted, and not shown.
                self.wire.tell(picture=text if len(text) <= LONGEST_PICTURE else "")
        if shown:
            self.wire.tell(result=shown[1][:LONGEST])

    @staticmethod
    def told(error):
        """The traceback, from where the code begins."""
        frame = error.__traceback__
        while frame and not frame.tb_frame.f_code.co_filename.startswith("<cell "):
            frame = frame.tb_next
        try:
            told = traceback.TracebackException(type(error), error, frame)
            if told.stack and told.stack[-1].name == "interrupted":
                told.stack.pop()
            return "".join(told.format())
        except BaseException:
            return type(error).__name__


Session().serve()
