"""Writes the seeds in tests/fuzz/corpus: small files, by NumPy where it knows the format.

A name that begins with bad_ is of a file that a reader must refuse.  Usage: corpus.py [FOLDER]
"""
import io
import json
import os
import struct
import sys
import zipfile

import numpy as np

root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")


def put(kind, name, data):
    folder = os.path.join(root, kind)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + "." + kind), "wb") as file:
        file.write(data)


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def raw_npy(header, data=b"", version=1):
    """An .npy file with any text as its header."""
    text = header.encode("utf-8")
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


ones = np.arange(6, dtype="f4").reshape(2, 3)

for version in (1, 2, 3):
    put("npy", "version%d" % version, npy(ones, (version, 0)))
for code in ("f8", "f2", "i8", "i2", "u1", "b1"):
    put("npy", code, npy(np.array([0, 1, 1]).astype(code)))
put("npy", "big_f4", npy(ones.astype(">f4")))
put("npy", "big_f8", npy(ones.astype(">f8")))
put("npy", "fortran", npy(np.asfortranarray(ones.reshape(1, 2, 3))))
put("npy", "scalar", npy(np.float32(3)))
put("npy", "empty", npy(np.zeros((2, 0, 3), "f4")))
put("npy", "python2", raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 1L), }\n",
                              b"\0" * 8))
put("npy", "double_quotes", raw_npy('{"shape":(1,),"descr":"=f4","fortran_order":True}', b"\0" * 4))
put("npy", "bad_object", npy(np.array([None, {}], dtype=object)))
put("npy", "bad_record", npy(np.zeros(2, dtype=[("a", "f4"), ("b", "i2")])))
put("npy", "bad_complex", npy(np.zeros(2, "c8")))
put("npy", "bad_unicode", npy(np.array(["text"])))
put("npy", "bad_huge", raw_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }"
                               % (1 << 40, 1 << 40)))
put("npy", "bad_claims", raw_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"
                                 % (1 << 37), b"\0" * 64))
put("npy", "bad_code", raw_npy("__import__('os').abort()"))

stored, deflated = io.BytesIO(), io.BytesIO()
np.savez(stored, a=ones, b=np.float64(2))
np.savez_compressed(deflated, a=ones, b=np.zeros((40, 40), ">f8"))
put("npz", "stored", stored.getvalue())
put("npz", "deflated", deflated.getvalue())
empty = io.BytesIO()
zipfile.ZipFile(empty, "w").close()
put("npz", "empty", empty.getvalue())


def archive(members, method=zipfile.ZIP_STORED, comment=b""):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as target:
        target.comment = comment
        for name, data in members:
            target.writestr(zipfile.ZipInfo(name), data, method)
    return file.getvalue()



class Stream(io.BytesIO):
    """Without going back, the sizes of a member stand behind it."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError


streamed = Stream()
np.savez_compressed(streamed, x=ones)
put("npz", "streamed", streamed.getvalue())
put("npz", "comment", archive([("x.npy", npy(ones))], comment=b"PK\5\6 is how the end begins"))
put("npz", "bad_text", archive([("readme.txt", b"hello")]))
put("npz", "bad_method", archive([("x.npy", npy(ones))], zipfile.ZIP_BZIP2))
put("npz", "bad_bomb", archive([("x.npy", npy(ones) + b"\0" * 100000)], zipfile.ZIP_DEFLATED))
good = archive([("x.npy", npy(ones))])
put("npz", "bad_checksum", good.replace(npy(ones)[-24:], b"\1" * 24))
put("npz", "bad_cut", good[:-30])


def zip64(data, name=b"x.npy"):
    """One stored member, all of whose numbers stand in the fields of Zip64."""
    crc = zipfile.crc32(data)
    none = 0xFFFFFFFF
    extra = struct.pack("<HHqq", 1, 16, len(data), len(data))
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 0, 0, 33, crc, none, none, len(name),
                        len(extra)) + name + extra + data
    extra = struct.pack("<HHqqq", 1, 24, len(data), len(data), 0)
    central = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0, 0, 0, 33, crc, none, none,
                          len(name), len(extra), 0, 0, 0, 0, none) + name + extra
    end = struct.pack("<4sqHHIIqqqq", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(central), len(local))
    locator = struct.pack("<4sIqI", b"PK\6\7", 0, len(local) + len(central), 1)
    return local + central + end + locator + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF,
                                                         0xFFFF, none, none, 0)


put("npz", "zip64", zip64(npy(ones)))


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype, shape, first, last):
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


data = ones.tobytes()
put("safetensors", "one", safetensors({"x": entry("F32", [2, 3], 0, 24)}, data))
put("safetensors", "two", safetensors({"__metadata__": {"format": "pt"},
                                       "b": entry("F64", [2], 8, 24),
                                       "a": entry("F32", [2], 0, 8)}, data))
put("safetensors", "empty", safetensors({}))
put("safetensors", "no_elements", safetensors({"x": entry("F32", [0, 3], 0, 0)}))
put("safetensors", "scalar", safetensors({"x": entry("F32", [], 0, 4)}, data[:4]))
put("safetensors", "padded", safetensors(b'{"\\u00e9\\ud83d\\ude00\\n":{"dtype":"F32","shape":[1],'
                                         b'"data_offsets":[0,4],"more":[1e3,null,true]}}   ',
                                         data[:4]))
for code, size in (("F16", 2), ("BF16", 2), ("I64", 8), ("I16", 2), ("U8", 1), ("BOOL", 1)):
    put("safetensors", code.lower(), safetensors({"x": entry(code, [1], 0, size)}, b"\1" * size))
put("safetensors", "bad_gap", safetensors({"x": entry("F32", [1], 4, 8)}, data[:8]))
put("safetensors", "bad_overlap", safetensors({"x": entry("F32", [2], 0, 8),
                                               "y": entry("F32", [2], 4, 12)}, data[:12]))
put("safetensors", "bad_range", safetensors({"x": entry("F32", [100], 0, 400)}, data))
put("safetensors", "bad_shape", safetensors({"x": entry("F32", [1 << 40, 1 << 40], 0, 24)}, data))
put("safetensors", "bad_length", struct.pack("<Q", 1 << 62) + b"{}")
put("safetensors", "bad_nested", safetensors(b"[" * 100 + b"]" * 100))

put("csv", "plain", b"1,2,3\n4,5.5,-6e-3\n")
put("csv", "header", b'"first, of two";second\r\n1;2\r\n\r\n3;nan\r\n')
put("csv", "words", b" inf ,-Infinity,NaN\n 0 ,1.,.2\n")
put("csv", "bad_hex", b"1,0x2\n")
put("csv", "quoted", b'"1","2"\n"3",4')
put("csv", "bad_ragged", b"1,2\n3\n")
put("csv", "bad_quote", b'1,"2\n')
