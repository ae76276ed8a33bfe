"""A program that the launcher runs again: its files go into a folder of their own, what it saves and sends goes nowhere.

The launcher had Linux refuse writes elsewhere. Here Python's functions get another place, so that the program goes on:

    written      open and os.open for writing, mkdir, rename and links make their files below the folder
    read         what was made there is found there, under its own name; all else is read where it is
    removed      what was made there goes; what lies elsewhere stays, and the program is told that it went
    saved        torch.save, safetensors and save_pretrained write nothing
    sent         sockets reach this machine alone

The files that were kept away are listed, a path a line, in the file "FOLDER.written", and what no connection was made to, as
"HOST:PORT", in "FOLDER.unsent". Thread rule: any thread.
"""

import builtins
import io
import os
import shutil
import stat as modes

from . import imports, settings

MOST_COPIED = 256 << 20  # of a file that is changed in part: its bytes are copied first
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SAVERS = {
    "transformers.modeling_utils": ("PreTrainedModel",),
    "transformers.tokenization_utils_base": ("PreTrainedTokenizerBase",),
    "peft.peft_model": ("PeftModel",),
    "diffusers.models.modeling_utils": ("ModelMixin",),
    "diffusers.pipelines.pipeline_utils": ("DiffusionPipeline",),
}


class _Call(object):
    """In a function's place: as an attribute of a class it binds no more than the built-in one did."""

    def __init__(self, call, original):
        self.call, self.__wrapped__ = call, original
        self.__name__, self.__doc__ = original.__name__, original.__doc__

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)


class Apart(object):
    def __init__(self, folder):
        self.folder = folder
        self.own = os.path.dirname(folder) + os.sep
        self.told = set()
        self.real = {name: getattr(os, name) for name in CALLS if hasattr(os, name)}
        self.real_open = io.open

    # --- places ---

    def outside(self, path, kwargs=None):
        """The absolute path where it is no place of ours; None: the call goes as it is."""
        if isinstance(path, int) or any((kwargs or {}).get(key) is not None for key in DIR_FDS):
            return None
        try:
            path = os.path.abspath(os.fsdecode(path))
        except (TypeError, ValueError):
            return None
        is_device = path.startswith(("/dev/", "/proc/")) and not path.startswith("/dev/shm/")
        return None if is_device or (path + os.sep).startswith(self.own) else path

    def place(self, path):
        return self.folder + path

    def mode_of(self, path):
        try:
            return self.real["stat"](path).st_mode
        except OSError:
            return 0

    def is_made(self, path):
        try:
            self.real["lstat"](self.place(path))
            return True
        except OSError:
            return False

    def found(self, path, given):
        """Where what lies there now is read."""
        return given if path is None or not self.is_made(path) else self.place(path)

    def tell(self, what, of="written"):
        if (what, of) in self.told:
            return
        self.told.add((what, of))
        try:
            with self.real_open("%s.%s" % (self.folder, of), "a", errors="replace") as out:
                out.write(what.replace("\n", " ") + "\n")
        except OSError:
            pass

    def make_room(self, path):
        """Whether a new name may be made there, as its folder is real, or was made: then it is made here."""
        parent = os.path.dirname(path)
        if not modes.S_ISDIR(self.mode_of(parent)) and not modes.S_ISDIR(self.mode_of(self.place(parent))):
            return False
        self.make_folders(self.place(parent))
        return True

    def make_folders(self, path):
        if not self.mode_of(path):
            self.make_folders(os.path.dirname(path))
            try:
                self.real["mkdir"](path)
            except FileExistsError:
                pass

    def for_writing(self, given, path, keeps, is_new):
        """Where a file is opened for writing: below the folder, with its bytes where they stay."""
        mode = self.mode_of(path)
        if self.is_made(path):
            return self.place(path)
        if (mode and (is_new or not modes.S_ISREG(mode))) or not self.make_room(path):
            return given  # a folder, a pipe, a name that is taken, or a place that does not exist: it is told so
        self.tell(path)
        if keeps and mode and self.real["stat"](path).st_size <= MOST_COPIED:
            with self.real_open(path, "rb") as old, self.real_open(self.place(path), "wb") as new:
                shutil.copyfileobj(old, new)
        return self.place(path)

    # --- functions ---

    def open(self, file, mode="r", *args, **kwargs):
        path = self.outside(file) if kwargs.get("opener") is None else None
        if path is not None:
            if set("wax+") & set(mode):
                file = self.for_writing(file, path, "w" not in mode, "x" in mode)
            else:
                file = self.found(path, file)
        return self.real_open(file, mode, *args, **kwargs)

    def os_open(self, path, flags, *args, **kwargs):
        place = self.outside(path, kwargs)
        if place is not None and flags & WRITES and not flags & os.O_DIRECTORY:
            if flags & os.O_CREAT or self.is_made(place) or self.mode_of(place):
                path = self.for_writing(path, place, not flags & os.O_TRUNC, flags & os.O_EXCL and flags & os.O_CREAT)
        elif place is not None:
            path = self.found(place, path)
        return self.real["open"](path, flags, *args, **kwargs)

    def mkdir(self, path, *args, **kwargs):
        place = self.outside(path, kwargs)
        if place is not None and (self.is_made(place) or (not self.mode_of(place) and self.make_room(place))):
            path = self.place(place)
        return self.real["mkdir"](path, *args, **kwargs)

    def reading(self, name):
        def call(path=".", *args, **kwargs):
            place = self.outside(path, kwargs)
            if name in ("listdir", "scandir") and place is not None and modes.S_ISDIR(self.mode_of(place)):
                made = self.real["listdir"](self.place(place)) if name == "listdir" and self.is_made(place) else []
                listed = self.real[name](path, *args, **kwargs)
                return sorted(set(listed) | set(made)) if made else listed
            return self.real[name](self.found(place, path), *args, **kwargs)

        return call

    def changing(self, name):
        """Of what was made here; to all else nothing is done."""

        def call(path, *args, **kwargs):
            place = self.outside(path, kwargs)
            if place is not None and not self.is_made(place):
                if self.mode_of(place):
                    self.tell(place)
                    return None
            return self.real[name](self.found(place, path), *args, **kwargs)

        return call

    def moving(self, name):
        """rename, replace, link and symlink: the new name is made here."""

        def call(source, target, *args, **kwargs):
            to, origin = self.outside(target, kwargs), self.outside(source, kwargs)
            target_place = target
            if to is not None and self.make_room(to):
                target_place = self.place(to)
                self.tell(to)
            if name == "symlink":
                return self.real[name](source, target_place, *args, **kwargs)
            if origin is None or self.is_made(origin):
                return self.real[name](self.found(origin, source), target_place, *args, **kwargs)
            if not self.mode_of(origin):
                return self.real[name](source, target, *args, **kwargs)  # it is told that there is none
            if self.mode_of(target_place):
                self.real["unlink"](target_place)
            return self.real["symlink"](origin, target_place)  # what lies there stays there, and has both names

        return call

    def rmtree(self, original):
        def call(path, *args, **kwargs):
            place = self.outside(path, kwargs)
            if place is not None and self.is_made(place):
                path = self.place(place)
            elif place is not None and self.mode_of(place):
                return None
            return original(path, *args, **kwargs)

        return call

    def install(self):
        makers = {"open": lambda name: self.os_open, "mkdir": lambda name: self.mkdir}
        for name, original in self.real.items():
            maker = makers.get(name) or getattr(self, CALLS[name])
            setattr(os, name, _Call(maker(name), original))
        builtins.open = io.open = _Call(self.open, self.real_open)
        shutil.rmtree = _Call(self.rmtree(shutil.rmtree), shutil.rmtree)

    # --- what is saved and sent ---

    def saves_nothing(self, original, at):
        """A save to a file, named by the argument at that place, does nothing; one to a buffer is done."""

        def save(*args, **kwargs):
            to = kwargs.get("f", kwargs.get("filename", args[at] if len(args) > at else None))
            path = self.outside(to) if isinstance(to, (str, bytes, os.PathLike)) else None
            if path is None:
                return original(*args, **kwargs)
            self.tell(path)
            return None

        return save

    def watch_savers(self):
        def patch(name, at):
            return lambda module: setattr(module, name, self.saves_nothing(getattr(module, name), at))

        imports.after("torch", patch("save", 1))
        for name in ("save_file", "save_model"):
            imports.after("safetensors.torch", patch(name, 1))
        imports.after("torch.distributed.checkpoint.state_dict_saver", self.no_distributed)
        for module, classes in SAVERS.items():
            imports.after(module, self.no_pretrained(classes))

    def no_distributed(self, module):
        for name in ("save", "save_state_dict"):
            if hasattr(module, name):
                setattr(module, name, lambda *args, **kwargs: None)

    def no_pretrained(self, classes):
        def patch(module):
            def save_pretrained(saved, save_directory, *args, **kwargs):
                path = self.outside(save_directory)
                self.tell(path if path is not None else str(save_directory))
                return ()

            for name in classes:
                if hasattr(module, name):
                    getattr(module, name).save_pretrained = save_pretrained

        return patch


    def watch_connections(self):
        imports.after("socket", lambda module: _stay_here(module, lambda place: self.tell(place, of="unsent")))


DIR_FDS = ("dir_fd", "src_dir_fd", "dst_dir_fd")
CALLS = {"open": "", "mkdir": ""}
CALLS.update({name: "reading" for name in ("stat", "lstat", "access", "listdir", "scandir", "readlink")})
CALLS.update({name: "changing" for name in ("remove", "unlink", "rmdir", "chmod", "chown", "lchown", "utime", "truncate",
                                            "setxattr", "removexattr")})
CALLS.update({name: "moving" for name in ("rename", "replace", "link", "symlink")})


def _stay_here(module, tell):
    """Connections that leave this machine are refused as by a network that is down; `tell` is told each, "HOST:PORT"."""
    import errno
    import ipaddress

    def own():
        try:
            return {info[4][0] for info in module.getaddrinfo(module.gethostname(), None)}
        except OSError:
            return set()

    def leaves(sock, address):
        if sock.family not in (module.AF_INET, module.AF_INET6):
            return False
        try:
            host = module.getaddrinfo(address[0], None)[0][4][0]
            return not ipaddress.ip_address(host.partition("%")[0]).is_loopback and host not in own()
        except (OSError, ValueError, IndexError, TypeError):
            return False  # it says by itself what is wrong

    def staying(original):
        def connect(sock, address):
            if leaves(sock, address):
                tell("%s:%s" % address[:2])
                raise OSError(errno.ENETUNREACH, "Network is unreachable: the program is run again, and sends nothing")
            return original(sock, address)

        return connect

    for name in ("connect", "connect_ex"):
        setattr(module.socket, name, staying(getattr(module.socket, name)))


def start():
    apart = Apart(os.environ[settings.APART])
    apart.install()
    apart.watch_savers()
    apart.watch_connections()
