"""Compiles sources with libamd_comgr.so.2. The compiler cache's tests start this script as a
process.

The script reads a JSON object: source, options, action, isa, logging, times, and optionally folder.
The script prints a list with one entry for each compilation: [status, objects]. Each object is
[kind, name, content in hex].
"""

from __future__ import annotations

import json
import sys
from ctypes import CDLL, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_size_t, c_uint64
from ctypes import create_string_buffer as buffer

SOURCE, OPENCL_1_2 = 1, 1
KINDS = range(1, 20)


class Object(Structure):
    """A comgr handle, passed by value."""

    _fields_ = (("handle", c_uint64),)


amd = CDLL("libamd_comgr.so.2")


def call(name: str, *arguments: object) -> None:
    assert getattr(amd, f"amd_comgr_{name}")(*arguments) == 0, name


def made(name: str, *arguments: object) -> Object:
    made = Object()
    call(name, *arguments, byref(made))
    return made


def text(name: str, data: Object) -> bytes:
    size = c_size_t()
    call(name, data, byref(size), None)
    room = buffer(max(size.value, 1))
    call(name, data, byref(size), room)
    return room.raw[: size.value]


def content(of: Object) -> list[tuple[int, str, str]]:
    found = []
    for kind in KINDS:
        count = c_size_t()
        if amd.amd_comgr_action_data_count(of, kind, byref(count)) != 0:
            continue
        for i in range(count.value):
            data = made("action_data_get_data", of, kind, c_size_t(i))
            name = text("get_data_name", data).rstrip(b"\0").decode()
            found.append((kind, name, text("get_data", data).hex()))
            call("release_data", data)
    return found


def compiled(asked: dict) -> tuple[int, list[tuple[int, str, str]]]:
    source = asked["source"].encode()
    data = made("create_data", SOURCE)
    call("set_data", data, c_size_t(len(source)), source)
    call("set_data_name", data, b"source.cl")
    given, result = made("create_data_set"), made("create_data_set")
    call("data_set_add", given, data)
    info = made("create_action_info")
    call("action_info_set_isa_name", info, asked["isa"].encode())
    call("action_info_set_language", info, OPENCL_1_2)
    call("action_info_set_logging", info, c_bool(asked["logging"]))
    options = [option.encode() for option in asked["options"]]
    listed = (c_char_p * len(options))(*options)
    call("action_info_set_option_list", info, listed, c_size_t(len(options)))
    if "folder" in asked:
        call("action_info_set_working_directory_path", info, asked["folder"].encode())
    status = amd.amd_comgr_do_action(c_int(asked["action"]), info, given, result)
    return status, content(result)


if __name__ == "__main__":
    amd.amd_comgr_action_data_count.argtypes = (Object, c_int, POINTER(c_size_t))
    asked = json.loads(sys.argv[1])
    print(json.dumps([compiled(asked) for _ in range(asked["times"])]))
