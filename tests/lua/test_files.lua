-- Tensors in files: what is saved is loaded again, by NumPy too; what is damaged is refused in a
-- sentence; a save that does not come to its end leaves the old file, and nothing else.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local codec = require "tensor.codec"
local equals, raises = lu.assertEquals, support.assert_raises

local folder = select(2, support.shell "mktemp -d"):match "%S+"
local inputs = 0 -- damaged ones that were tried

local function path(name) return folder .. "/" .. name end

-- Names in the folder.
local function listing() return select(2, support.shell("ls -A " .. folder)) end

local function has(dtype) return tensor[dtype] ~= nil end

local function is_float(dtype) return dtype:find "float" ~= nil end

-- Values that each dtype has; the same ones for all floats, and for all integers.
local function values_of(dtype, count)
  local list = {}
  for i = 1, count do
    local value = (i * 7 % 23 - 5) / (is_float(dtype) and 8 or 1)
    if dtype == "uint8" then value = math.abs(value) end
    list[i] = dtype == "bool" and value > 0 or value
  end
  return list
end

local function make(shape, dtype)
  return support.tensor(shape, values_of(dtype, support.numel(shape)), dtype)
end

local function assert_same(x, y, what)
  equals(x.shape, y.shape, what)
  equals(x.dtype, y.dtype, what)
  lu.assertTrue(tensor.equal(x, y), what)
end

local SHAPES = {{}, {1}, {5}, {0}, {2, 3}, {0, 3}, {3, 1, 2}, {2, 3, 4, 2}}

-- Every layout of every shape of every dtype that this build has, as {name, tensor}.
local function all_tensors()
  local list = {}
  for _, row in ipairs(codec.DTYPES) do
    for _, shape in ipairs(has(row.name) and SHAPES or {}) do
      local numbers = row.name ~= "bool" and values_of(row.name, support.numel(shape))
      local name = row.name .. support.shape_text(shape)
      for _, layout in ipairs(numbers and is_float(row.name) and
                              support.layouts(shape, numbers, row.name) or
                              {{"contiguous", make(shape, row.name)}}) do
        list[#list + 1] = {layout[1] .. " " .. name, layout[2]}
      end
    end
  end
  local x = make({4, 3}, "float32")
  list[#list + 1] = {"one column", x[{ {}, 2 }]}
  list[#list + 1] = {"reversed", make({2, 3, 4}, "float64"):transpose(1, 3)}
  if tensor.expand then list[#list + 1] = {"broadcast", make({3, 1}, "float32"):expand(3, 4)} end
  return list
end

-- ---- round trips ----

TestRoundTrips = {}

function TestRoundTrips:test_npy()
  for _, row in ipairs(all_tensors()) do
    local name, x = row[1], row[2]
    if x.dtype ~= "bfloat16" then
      equals(tensor.save(path "x.npy", x), path "x.npy")
      assert_same(tensor.load(path "x.npy"), x, name)
    end
  end
end

-- All of them at once.
local function check_table(file, options, skipped)
  local tensors = {}
  for _, row in ipairs(all_tensors()) do
    if row[2].dtype ~= skipped then tensors[row[1]] = row[2] end
  end
  tensor.save(file, tensors, options)
  local loaded = tensor.load(file)
  for name, x in pairs(tensors) do assert_same(loaded[name], x, name) end
  for name in pairs(loaded) do lu.assertNotNil(tensors[name]) end
end

function TestRoundTrips:test_npz() check_table(path "x.npz", nil, "bfloat16") end

function TestRoundTrips:test_npz_deflated()
  check_table(path "x.npz", {compress = true}, "bfloat16")
  local zeros = tensor.zeros(300, 300)
  tensor.save(path "small.npz", {x = zeros}, {compress = true})
  lu.assertTrue(#support.read_file(path "small.npz") < 2000)
  assert_same(tensor.load(path "small.npz").x, zeros)
end

function TestRoundTrips:test_safetensors() check_table(path "x.safetensors") end

function TestRoundTrips:test_large_ones()
  tensor.manual_seed(1)
  local x = tensor.randn(700, 300) -- larger than all buffers
  for _, y in ipairs {x, x:t(), x[{ {1, 700, 3}, {2, 299} }]} do
    tensor.save(path "x.npy", y)
    assert_same(tensor.load(path "x.npy"), y)
    for _, file in ipairs {path "x.npz", path "x.safetensors"} do
      tensor.save(file, {y = y, x = x})
      assert_same(tensor.load(file).y, y)
    end
    tensor.save(path "x.npz", {y = y}, {compress = true})
    assert_same(tensor.load(path "x.npz").y, y)
    assert_same(tensor.fromfile(y:tofile(path "x.bin")):reshape(y.shape), y)
  end
end

function TestRoundTrips:test_no_members()
  for _, file in ipairs {path "none.npz", path "none.safetensors"} do
    tensor.save(file, {})
    equals(next(tensor.load(file)), nil)
  end
end

function TestRoundTrips:test_names()
  local tensors = {}
  for _, name in ipairs {"", "a/b", "x.npy", "é", "with space", '"quoted"\\', "line\nbreak", "\1"} do
    tensors[name] = tensor{#name}
  end
  for _, file in ipairs {path "names.npz", path "names.safetensors"} do
    tensor.save(file, tensors)
    local loaded = tensor.load(file)
    for name in pairs(tensors) do equals(loaded[name]:item(), #name) end
  end
end

function TestRoundTrips:test_special_values()
  local list = {0.0, -0.0, math.huge, -math.huge, 0 / 0, 1e-45, 3e38, 1 / 3}
  tensor.save(path "x.npy", tensor(list))
  local expected = {}
  for i, x in ipairs(list) do expected[i] = support.round("float32", x) end
  support.assert_values(tensor.load(path "x.npy"), {#list}, expected)
end

-- Saving waits; what is loaded is there.
function TestRoundTrips:test_who_waits()
  local x = tensor.ones(50, 50):mm(tensor.ones(50, 50)) + 1
  tensor.save(path "x.npy", x)
  local y = tensor.load(path "x.npy")
  lu.assertTrue(y:is_ready())
  equals((y * 2):sum():item(), 50 * 50 * 51 * 2)
end

-- A tensor that was loaded is its own: later saves and writes do not touch it.
function TestRoundTrips:test_a_loaded_tensor_is_a_copy()
  tensor.save(path "x.npy", tensor{1, 2})
  local x = tensor.load(path "x.npy")
  tensor.save(path "x.npy", x:add(5))
  equals(x:totable(), {1, 2})
  x:mul_(10)
  equals(tensor.load(path "x.npy"):totable(), {6, 7})
end

-- ---- NumPy's side ----

TestNumpy = {}

local function python(code)
  local result = support.numpy(("folder = %q\n"):format(folder) .. code, {})
  if not result then lu.skip "no NumPy" end
  return result
end

function TestNumpy:test_files_by_numpy()
  local expected = python [[
import zipfile
from numpy.lib import format
result = []
codes = 'f8 f4 f2 i8 i4 i2 i1 u1 b1'.split()
def made(code, shape):
    return (np.arange(np.prod(shape, dtype=int)) * 7 % 23 % (2 if code == 'b1' else 24)
            ).reshape(shape).astype(code)
n = 0
members = {}
for code in codes:
    for order in '<>':
        for fortran in (0, 1):
            for version in (1, 2, 3):
                for shape in ((), (4,), (2, 3), (2, 0), (2, 3, 2)):
                    x = made(code, shape).astype(order + code)
                    if fortran: x = np.asfortranarray(x)
                    n += 1
                    with open('%s/%d_%s.npy' % (folder, n, code), 'wb') as file:
                        format.write_array(file, x, (version, 0))
                    result += [n, x.ndim, *x.shape, *x.ravel().astype(float)]
                    members['%d_%s' % (n, code)] = x
np.savez(folder + '/stored.npz', **{k: x for k, x in members.items() if k[-2:] in ('f4', 'f8')})
np.savez_compressed(folder + '/deflated.npz', **{k: x for k, x in members.items()
                                                 if k[-2:] in ('f4', 'f8')})]]
  local stored = tensor.load(path "stored.npz")
  local deflated = tensor.load(path "deflated.npz")
  local files, at, loaded = {}, 1, 0
  for file in listing():gmatch "%d+_%w+%.npy" do files[tonumber(file:match "%d+")] = file end
  local rows = codec.by "npy"
  while expected[at] do
    local n, shape, values = expected[at] // 1 | 0, {}, {}
    for d = 1, expected[at + 1] // 1 | 0 do shape[d] = expected[at + 1 + d] // 1 | 0 end
    at = at + 2 + #shape
    for i = 1, support.numel(shape) do values[i] = expected[at + i - 1] end
    at = at + #values
    local file = files[n]
    local code = file:match "_(%w+)"
    local dtype = rows[code].name
    if not has(dtype) then
      raises(("load: '%s' holds %s, a dtype that this build does not have"):format(path(file),
                                                                                   dtype),
             tensor.load, path(file))
    else
      local x = tensor.load(path(file))
      equals(x.dtype, dtype)
      support.assert_values(x:to "float64", shape, values, file)
      for _, archive in ipairs {is_float(dtype) and code ~= "f2" and stored or nil, deflated} do
        local member = archive[file:match "^(.*)%.npy"]
        if code == "f4" or code == "f8" then assert_same(member, x, file) end
      end
      loaded = loaded + 1
    end
    os.remove(path(file))
  end
  lu.assertTrue(loaded >= 120, loaded .. " files")
end

function TestNumpy:test_files_for_numpy()
  local tensors, names = {}, {}
  for i, row in ipairs(all_tensors()) do
    if row[2].dtype ~= "bfloat16" then
      local name = ("t%d_%s"):format(i, codec.by "name"[row[2].dtype].npy)
      tensors[name], names[#names + 1] = row[2], name
    end
  end
  for _, name in ipairs(names) do tensor.save(path(name .. ".npy"), tensors[name]) end
  tensor.save(path "all.npz", tensors)
  tensor.save(path "small.npz", tensors, {compress = true})
  local result = python(([[
import glob, os, zipfile
result = []
stored, deflated = np.load(folder + '/all.npz'), np.load(folder + '/small.npz')
for archive in ('all', 'small'):
    with zipfile.ZipFile(folder + '/' + archive + '.npz') as file: assert file.testzip() is None
names = '%s'.split()
assert sorted(names) == sorted(stored.files) == sorted(deflated.files)
for name in names:
    x = np.load(folder + '/' + name + '.npy')
    assert x.dtype == np.dtype('<' + name.split('_')[1])
    for y in (stored[name], deflated[name]):
        assert x.dtype == y.dtype and x.shape == y.shape and (x == y).all()
        assert x.flags.f_contiguous == y.flags.f_contiguous
    result += [x.ndim, *x.shape, *x.ravel().astype(float)]
]]):format(table.concat(names, " ")))
  local at = 1
  for _, name in ipairs(names) do
    local x = tensors[name]
    local shape = x.shape
    equals(result[at], #shape)
    for d, size in ipairs(shape) do equals(result[at + d], size) end
    at = at + 1 + #shape
    local values = support.flat(x:to "float64")
    for i, value in ipairs(values) do equals(result[at + i - 1], value, name) end
    at = at + #values
    os.remove(path(name .. ".npy"))
  end
  equals(at, #result + 1)
end

-- The format is simple enough to be read by hand.
function TestNumpy:test_safetensors_for_python()
  tensor.save(path "x.safetensors", {b = tensor{{1, 2, 3}}, a = tensor({4}, {dtype = "float64"})})
  local result = python [[
import json, struct
bytes = open(folder + '/x.safetensors', 'rb').read()
length = struct.unpack('<Q', bytes[:8])[0]
header = json.loads(bytes[8:8 + length])
data = bytes[8 + length:]
result = [length % 8, len(header)]
for name, code, dtype in (('a', '<f8', 'F64'), ('b', '<f4', 'F32')):
    entry = header[name]
    first, last = entry['data_offsets']
    assert entry['dtype'] == dtype and first % np.dtype(code).itemsize == 0
    result += entry['shape'] + list(np.frombuffer(data[first:last], code))]]
  equals(result, {0, 2, 1, 4, 1, 3, 1, 2, 3})
end

-- Each dtype is as large as NumPy says, under its name there.
function TestNumpy:test_the_table_of_dtypes()
  local codes, sizes = {}, {}
  for _, row in ipairs(codec.DTYPES) do
    if row.npy then
      codes[#codes + 1] = row.npy .. " " .. row.name
      sizes[#sizes + 1] = row.size
    end
    if row.pack then equals(string.packsize(row.pack), row.size) end
    if has(row.name) then
      local x = tensor.zeros({3}, {dtype = row.name})
      equals(#support.read_file(x:tofile(path "x.bin")), 3 * row.size)
    end
  end
  equals(#codec.DTYPES, 10)
  equals(python(([[
result = []
for line in '%s'.split(','):
    code, name = line.split()
    assert np.dtype(code).name == name
    result.append(np.dtype(code).itemsize)]]):format(table.concat(codes, ","))), sizes)
end

-- ---- raw bytes ----

TestRaw = {}

function TestRaw:test_bytes()
  local x = tensor{{1, 2}, {3, -4}}
  equals(x:t():tofile(path "x.bin"), path "x.bin")
  equals(support.read_file(path "x.bin"), string.pack("<ffff", 1, 3, 2, -4))
  equals(tensor.fromfile(path "x.bin"):totable(), {1, 3, 2, -4})
  equals(tensor.fromfile(path "x.bin", {count = 2}):totable(), {1, 3})
  equals(tensor.fromfile(path "x.bin", {offset = 8}):totable(), {2, -4})
  equals(tensor.fromfile(path "x.bin", {offset = 4, count = 1}):totable(), {3})
  equals(tensor.fromfile(path "x.bin", {offset = 16}).shape, {0})
  equals(tensor.fromfile(path "x.bin", {count = 0}).shape, {0})
  support.write_file(path "x.bin", string.pack("<dd", 0.1, -0.2))
  equals(tensor.fromfile(path "x.bin", {dtype = "float64"}):totable(), {0.1, -0.2})
end

function TestRaw:test_errors()
  local file = path "x.bin"
  local q = "'" .. file .. "'"
  support.write_file(file, ("x"):rep(10))
  raises("fromfile: " .. q .. " has 10 bytes from 0 on, no multiple of the 4 of a float32",
         tensor.fromfile, file)
  raises("fromfile: " .. q .. " has 10 bytes, and none at 11", tensor.fromfile, file,
         {offset = 11})
  raises("fromfile: " .. q .. " is cut short: its data should have 12 bytes, and 10 are there",
         tensor.fromfile, file, {count = 3})
  raises("fromfile: " .. q .. ": a tensor of 9223372036854775807 elements is too large",
         tensor.fromfile, file, {count = math.maxinteger})
  raises("fromfile: the option count must be a number from 0, not -1", tensor.fromfile, file,
         {count = -1})
  raises("fromfile: the option offset must be a number from 0, not 0.5", tensor.fromfile, file,
         {offset = 0.5})
  raises("fromfile: unknown option 'cnt': dtype, count, offset", tensor.fromfile, file, {cnt = 1})
  raises("fromfile: 'complex64' is not a dtype", tensor.fromfile, file, {dtype = "complex64"})
  raises("fromfile: the path must be a string, not nil", tensor.fromfile)
  raises("fromfile: " .. "'a?b' is no path: there is a zero byte in it", tensor.fromfile, "a\0b")
  raises("tofile: argument 1 must be a tensor, not string", tensor.tofile, "x", "y")
  raises("tofile: 3 arguments are too many: at most 2", tensor.tofile, tensor{1}, "x", 1)
end

-- ---- CSV ----

TestCsv = {}

local function csv(text, options)
  support.write_file(path "x.csv", text)
  return tensor.load_csv(path "x.csv", options)
end

function TestCsv:test_reading()
  equals(csv "1,2\n3,4\n":totable(), {{1, 2}, {3, 4}})
  equals(csv "1,2\n3,4":totable(), {{1, 2}, {3, 4}})
  equals(csv "\n1,2\r\n\r\n \n3,4\r\n":totable(), {{1, 2}, {3, 4}})
  equals(csv "\xef\xbb\xbf1\n":totable(), {{1}})
  equals(csv ' 1.5 ,"-2e3"\n.5,+7.\n':totable(), {{1.5, -2000}, {0.5, 7}})
  equals(csv "1e400,-inf\nInfinity,+INF\n":totable(),
         {{math.huge, -math.huge}, {math.huge, math.huge}})
  lu.assertNaN(csv "NaN\n":item())
  equals(csv("1;2\n3;4\n", {delimiter = ";"}):totable(), {{1, 2}, {3, 4}})
  equals(csv("1\t2", {delimiter = "\t"}):totable(), {{1, 2}})
  equals(csv("0.1", {dtype = "float64"}):item(), 0.1)
  local x, names = csv('a,"b ""c"", d"\n1,2\n', {header = true})
  equals({x:totable(), names}, {{{1, 2}}, {"a", 'b "c", d'}})
  equals(csv("").shape, {0, 0})
  x, names = csv("a,b\n", {header = true})
  equals({x.shape, names}, {{0, 2}, {"a", "b"}})
  equals(select("#", csv "1"), 2)
end

-- Lines across the pieces in which a file is read.
function TestCsv:test_large_files()
  local lines, count = {}, support.slow and 3000 or 60000
  for i = 1, count do lines[i] = ("%d,%d.25,%d"):format(i, i % 7, -i) end
  local x = csv(table.concat(lines, "\n"))
  equals(x.shape, {count, 3})
  for _, i in ipairs {1, 2, count // 2, count - 1000, count} do
    equals(x[i]:totable(), {i, i % 7 + 0.25, -i})
  end
  local wide = {}
  for i = 1, 4 * count do wide[i] = i % 1000 end
  x = csv(table.concat(wide, ","))
  equals(x.shape, {1, 4 * count})
  equals(x[1][4 * count - 1]:item(), 999)
end

function TestCsv:test_round_trips()
  tensor.manual_seed(3)
  for _, dtype in ipairs {"float32", "float64"} do
    local x = tensor.randn(40, 30, {dtype = dtype}) ^ 9
    for _, y in ipairs {x, x:t(), x[{ {1, 40, 7}, {} }]} do
      tensor.save_csv(path "y.csv", y)
      assert_same(tensor.load_csv(path "y.csv", {dtype = dtype}), y)
    end
  end
  tensor.save_csv(path "y.csv", tensor{0.1, 1e10, -0.0, 1 / 3, math.huge, -math.huge})
  equals(support.read_file(path "y.csv"), "0.1\n1e+10\n-0\n0.33333334\ninf\n-inf\n")
  tensor.save_csv(path "y.csv", tensor({{1 / 3, 2}}, {dtype = "float64"}),
                  {delimiter = ";", header = {"a;b", 'say "c"'}})
  equals(support.read_file(path "y.csv"), '"a;b";"say ""c"""\n0.3333333333333333;2\n')
  local x, names = tensor.load_csv(path "y.csv", {delimiter = ";", header = true})
  equals({x.shape, names}, {{1, 2}, {"a;b", 'say "c"'}})
  tensor.save_csv(path "y.csv", tensor.zeros(0, 3))
  equals(support.read_file(path "y.csv"), "")
end

function TestCsv:test_integers()
  for _, dtype in ipairs {"int64", "int32", "int16", "int8", "uint8", "bool"} do
    if has(dtype) then
      local bits = tonumber(dtype:match "%d+" or 1)
      local signed = dtype:sub(1, 1) == "i"
      local low, high = signed and -(1 << bits - 1) or 0,
                        signed and (1 << bits - 1) - 1 or (1 << bits) - 1
      local x = csv(("%d,%d\n1,0\n"):format(low, high), {dtype = dtype})
      equals({x.dtype, x.shape}, {dtype, {2, 2}})
      equals(support.read_file(tensor.save_csv(path "y.csv", x)), ("%d,%d\n1,0\n"):format(low, high))
      for _, text in ipairs {"1.5", "1e300", "nan", "2.5e0", "9223372036854775808"} do
        raises(("load_csv: '%s' has '%s' in line 1, column 1, which is no %s"):format(
          path "x.csv", text, dtype), csv, text, {dtype = dtype})
      end
    end
  end
end

function TestCsv:test_errors()
  local q = "load_csv: '" .. path "x.csv" .. "' "
  for text, message in pairs {
    ["1,2\n3\n"] = "has 1 columns in line 2, and 2 before",
    ["1,2\n\n3,4,5\n"] = "has 3 columns in line 3, and 2 before",
    ["1,2\n3,x\n"] = "has 'x' in line 2, column 2, which is no number",
    ["1,,2"] = "has '' in line 1, column 2, which is no number",
    ["1,2,"] = "has '' in line 1, column 3, which is no number",
    ["0x10"] = "has '0x10' in line 1, column 1, which is no number",
    ["1 2"] = "has '1 2' in line 1, column 1, which is no number",
    ['1,"2'] = "has a quote in line 1 that does not end",
    ['1,"2"3'] = "has text behind the quotes in line 1, column 2",
    ["1\n\1\2"] = "has '??' in line 2, column 1, which is no number",
  } do
    raises(q .. message, csv, text)
  end
  raises("load_csv: ',,' cannot be a delimiter: one character, and none of a number's", csv, "",
         {delimiter = ",,"})
  raises("load_csv: '.' cannot be a delimiter: one character, and none of a number's", csv, "",
         {delimiter = "."})
  raises("load_csv: the option header must be a boolean, not 1", csv, "", {header = 1})
  raises("save_csv: wants 1 or 2 dimensions, not 3", tensor.save_csv, path "y.csv",
         tensor.zeros(1, 1, 1))
  raises("save_csv: wants 1 or 2 dimensions, not 0", tensor.save_csv, path "y.csv", tensor(1))
  raises("save_csv: the header must have 2 names, and name 2 is nil", tensor.save_csv,
         path "y.csv", tensor.zeros(1, 2), {header = {"a"}})
  raises("save_csv: argument 2 must be a tensor, not table", tensor.save_csv, path "y.csv", {})
end

-- ---- what is refused ----

TestRefused = {}

local function npy(header, data)
  return "\x93NUMPY\1\0" .. string.pack("<s2", header) .. (data or "")
end

local function dictionary(descr, order, shape)
  return ("{'descr': %s, 'fortran_order': %s, 'shape': %s, }"):format(descr, order, shape)
end

local function refused(file, bytes, message)
  support.write_file(path(file), bytes)
  raises(("load: '%s' %s"):format(path(file), message), tensor.load, path(file))
  inputs = inputs + 1
end

function TestRefused:test_npy()
  local four = ("\0"):rep(4)
  for bytes, message in pairs {
    [""] = "is cut short: its beginning should have 8 bytes, and 0 are there",
    ["\x93NUMPX\1\0\0\0"] = "is no .npy file: it does not begin as one",
    ["\x93NUMPY\4\0\0\0"] = "is of version 4.0, and versions 1.0 to 3.0 are known",
    ["\x93NUMPY\1\1\0\0"] = "is of version 1.1, and versions 1.0 to 3.0 are known",
    ["\x93NUMPY\2\0\xff\xff\xff\xff"] = "is damaged: a header of 4294967295 bytes is too long",
    ["\x93NUMPY\1\0\xff\xff{}"] = "is cut short: its header should have 65535 bytes, and 2 are there",
    [npy "{}"] = "is damaged: its header has no 'descr'",
    [npy ""] = "is damaged: its header is no dictionary of Python's",
    [npy "print('x')"] = "is damaged: its header is no dictionary of Python's",
    [npy(dictionary("'<f4'", "False", "(1,)") .. "x", four)] =
      "is damaged: its header is no dictionary of Python's",
    [npy "{'descr': __import__('os')}"] = "is damaged: its header has a strange 'descr'",
    [npy(dictionary("'|O'", "False", "()"))] =
      "holds pickled Python objects, which are never loaded",
    [npy(dictionary("[('a', '<f4')]", "False", "()"))] = "holds records, which no tensor can",
    [npy(dictionary("'<c8'", "False", "()"))] =
      "holds NumPy's '<c8', which is no dtype of tensors",
    [npy(dictionary("'<U5'", "False", "()"))] =
      "holds NumPy's '<U5', which is no dtype of tensors",
    [npy(dictionary("'|f4'", "False", "()"))] = "is damaged: its dtype '|f4' has no byte order",
    [npy(dictionary("'<f4'", "1", "()"))] = "is damaged: its header has a strange 'fortran_order'",
    [npy(dictionary("'<f4'", "False", "(3)"))] = "is damaged: its header has a strange 'shape'",
    [npy(dictionary("'<f4'", "False", "(-3,)"))] = "is damaged: its header has a strange 'shape'",
    [npy(dictionary("'<f4'", "False", "(1.0,)"))] = "is damaged: its header has a strange 'shape'",
    [npy(dictionary("'<f4'", "False", "(99999999999999999999,)"))] =
      "is damaged: its header has a strange 'shape'",
    [npy(dictionary("'<f4'", "False", "(1,), 'x': 1"))] = "is damaged: 'x' is no key of a header",
    [npy(dictionary("'<f4'", "False", "(1,), 'shape': (1,)"))] =
      "is damaged: its header has two 'shape'",
    [npy(dictionary("'<f4'", "False", "(2,)"), four)] =
      "is cut short: its data should have 8 bytes, and 4 are there",
    [npy(dictionary("'<f4'", "False", "(1,)"), four .. "x")] = "has 1 bytes more than it says",
    [npy(dictionary("'<f4'", "True", "(1000000, 1000000)"), four)] =
      "is cut short: its data should have 4000000000000 bytes, and 4 are there",
  } do
    refused("bad.npy", bytes, message)
  end
  support.write_file(path "bad.npy", npy(dictionary("'<f4'", "False", "(4294967296, 4294967296)")))
  raises("load: '" .. path "bad.npy" .. "': a tensor of 4294967296x4294967296 elements is too large",
         tensor.load, path "bad.npy")
  support.write_file(path "bad.npy", npy(dictionary("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), four))
  raises("load: '" .. path "bad.npy" .. "': 9 dimensions are too many: at most 8",
         tensor.load, path "bad.npy")
end

local function safetensors(header, data) return string.pack("<s8", header) .. (data or "") end

local function entry(dtype, shape, offsets, name)
  return ('"%s":{"dtype":"%s","shape":%s,"data_offsets":%s}'):format(name or "x", dtype, shape,
                                                                     offsets)
end

function TestRefused:test_safetensors()
  local eight = ("\0"):rep(8)
  local function one(...) return "{" .. entry(...) .. "}" end
  for bytes, message in pairs {
    [""] = "is cut short: the header's length should have 8 bytes, and 0 are there",
    [("\xff"):rep(8)] =
      "is no .safetensors file, or is damaged: its header would be too long",
    [string.pack("<i8", 100000001)] =
      "is no .safetensors file, or is damaged: its header would be too long",
    [string.pack("<i8", 3) .. "{}"] =
      "is cut short: its header should have 3 bytes, and 2 are there",
    [safetensors "[]"] = "is damaged: its header is no object of JSON's",
    [safetensors " {}"] = "is damaged: its header is no object of JSON's",
    [safetensors '"x"'] = "is damaged: its header is no object of JSON's",
    [safetensors "null"] = "is damaged: its header is no object of JSON's",
    [safetensors "{} {}"] = "is damaged: its header has more than one value at byte 4",
    [safetensors '{"x":1'] = "is damaged: its header has no comma and no '}' at byte 7",
    [safetensors '{"x" 1}'] = "is damaged: its header has no colon at byte 6",
    [safetensors '{x:1}'] = "is damaged: its header has no name at byte 2",
    [safetensors '{"x":01}'] = "is damaged: its header has a broken number at byte 6",
    [safetensors '{"x":-}'] = "is damaged: its header has a broken number at byte 6",
    [safetensors '{"x":True}'] = "is damaged: its header has a broken number at byte 6",
    [safetensors '{"\\q":1}'] = "is damaged: its header has a broken escape at byte 3",
    [safetensors '{"\\ud800":1}'] = "is damaged: its header has half a character at byte 9",
    [safetensors '{"\\udc00":1}'] = "is damaged: its header has half a character at byte 9",
    [safetensors '{"\xff":1}'] = "is damaged: its header has text that is not UTF-8 at byte 2",
    [safetensors '{"x'] = "is damaged: its header has text that does not end at byte 4",
    [safetensors '{"x":1,"x":2}'] =
      "is damaged: its header has a name that was there before at byte 8",
    [safetensors(("["):rep(100000))] =
      "is damaged: its header has nested too deeply at byte 65",
    [safetensors '{"x":3}'] = "is damaged: its header does not describe 'x'",
    [safetensors(one("F32", "[1.5]", "[0,4]"), eight)] =
      "is damaged: its header does not describe 'x'",
    [safetensors(one("F32", "[-1]", "[0,4]"), eight)] =
      "is damaged: its header does not describe 'x'",
    [safetensors(one("F32", "[null]", "[0,4]"), eight)] =
      "is damaged: its header does not describe 'x'",
    [safetensors(one("F32", "[1]", "[4,0]"), eight)] =
      "is damaged: its header does not describe 'x'",
    [safetensors(one("F32", "[1]", "[0,4,8]"), eight)] =
      "is damaged: its header does not describe 'x'",
    [safetensors(one("F32", "[1]", "[0,1e1]"), eight)] =
      "is damaged: its header does not describe 'x'",
    [safetensors(one("F8_E4M3", "[1]", "[0,1]"), "x")] =
      "holds 'x' of dtype 'F8_E4M3', which is none of tensors",
    [safetensors(one("F32", "[1]", "[0,4]"), eight)] = "has 4 bytes more than it says",
    [safetensors(one("F32", "[1]", "[4,8]"), eight)] =
      "is damaged: there is a gap before the elements of 'x'",
    [safetensors(one("F32", "[4]", "[0,16]"), eight)] =
      "is cut short: 'x' should end at byte 16 of the elements, and 8 are there",
    [safetensors("{" .. entry("F32", "[2]", "[0,8]") .. "," ..
                 entry("F32", "[1]", "[4,8]", "y") .. "}", eight)] =
      "is damaged: the elements of 'y' overlap others",
  } do
    refused("bad.safetensors", bytes, message)
  end
  for bytes, message in pairs {
    [safetensors(one("F32", "[1]", "[0,8]"), eight)] = " has 4 bytes more than it says",
    [safetensors(one("F32", "[3]", "[0,8]"), eight)] =
      " is cut short: its data should have 12 bytes, and 8 are there",
    [safetensors(one("F32", "[4294967296,4294967296]", "[0,8]"), eight)] =
      ": a tensor of 4294967296x4294967296 elements is too large",
  } do
    support.write_file(path "bad.safetensors", bytes)
    raises(("load: '%s': 'x'%s"):format(path "bad.safetensors", message), tensor.load,
           path "bad.safetensors")
  end
end

-- The seeds of the fuzzer: those called bad_ are refused, and the others are read.
function TestRefused:test_seeds()
  local parse = require "tensor.formats".parse
  local _, files = support.shell("ls " .. here .. "../fuzz/corpus/*/*")
  local count = 0
  for file in files:gmatch "%S+" do
    local name, format = file:match "([^/]+)%.(%w+)$"
    local ok, value = pcall(parse, format, support.read_file(file),
                            name == "header" and {header = true, delimiter = ";"} or nil)
    if name:find "^bad_" then
      equals(ok, false, file)
      lu.assertStrContains(value, "load: 'bytes'")
    elseif not ok then
      lu.assertStrMatches(value, ".*holds %w+, a dtype that this build does not have", nil, nil,
                          file)
    end
    count = count + 1
  end
  lu.assertTrue(count > 50)
end

-- Whatever the path, and whatever the argument.
function TestRefused:test_arguments()
  local x = tensor{1}
  raises("load: the path must be a string, not nil", tensor.load)
  raises("load: the path must be a string, not table", tensor.load, {})
  raises("load: 2 arguments are too many: at most 1", tensor.load, "x", 1)
  raises("load: 'x' must end in .npy, .npz or .safetensors; raw bytes are for fromfile",
         tensor.load, "x")
  raises("save: 'x.txt' must end in .npy, .npz or .safetensors; raw bytes are for tofile",
         tensor.save, "x.txt", x)
  raises("load: '/nowhere/x.npy' cannot be opened: No such file or directory", tensor.load,
         "/nowhere/x.npy")
  raises("save: '/nowhere/x.npy' cannot be written: No such file or directory", tensor.save,
         "/nowhere/x.npy", x)
  raises("fromfile: '/dev/zero' is a device, not a file", tensor.fromfile, "/dev/zero")
  raises("tofile: '/dev/full' is a device, not a file", tensor.tofile, x, "/dev/full")
  raises("fromfile: '/' is a folder, not a file", tensor.fromfile, "/")
  raises("save: what .npy holds must be a tensor, not table", tensor.save, path "a.npy", {x})
  raises("save: .npz holds a table of tensors, {name = x}, not a tensor", tensor.save,
         path "a.npz", x)
  raises("save: .safetensors holds a table of tensors, {name = x}, not nil", tensor.save,
         path "a.safetensors")
  raises("save: '" .. path "a.npz" .. "': a tensor's name must be a string without zeros, " ..
         "as in {weight = w}, not 1", tensor.save, path "a.npz", {x})
  raises("save: 'b' must be a tensor, not 3", tensor.save, path "a.npz", {a = x, b = 3})
  local closed = tensor{1}
  do local _ <close> = closed end
  raises("save: 'b' is a tensor that has been closed", tensor.save, path "a.npz", {b = closed})
  raises("save: what .npy holds is a tensor that has been closed", tensor.save, path "a.npy",
         closed)
  raises("save: unknown option 'deflate': compress", tensor.save, path "a.npz", {}, {deflate = 1})
  raises("save: the option compress must be a boolean, not 1", tensor.save, path "a.npz", {},
         {compress = 1})
  raises("save: unknown option 'compress': there are none here", tensor.save, path "a.npy", x,
         {compress = true})
  raises("save: the options must be a table, not true", tensor.save, path "a.npy", x, true)
  raises("save: '" .. path "a.safetensors" .. "': the name '?' is not UTF-8", tensor.save,
         path "a.safetensors", {["\xff"] = x})
  raises("save: '" .. path "a.safetensors" .. "': no tensor can be called __metadata__",
         tensor.save, path "a.safetensors", {__metadata__ = x})
  if has "bfloat16" then
    raises("save: '" .. path "a.npy" .. "' cannot hold bfloat16, which NumPy does not have: " ..
           "save it as .safetensors", tensor.save, path "a.npy", x:to "bfloat16")
  end
  equals(listing():find "^a%." or listing():find "\na%.", nil)
end

-- A FIFO would wait for somebody to write.
function TestRefused:test_a_fifo()
  support.shell("mkfifo " .. path "fifo.npy")
  raises("load: '" .. path "fifo.npy" .. "' is a device, not a file", tensor.load, path "fifo.npy")
  os.remove(path "fifo.npy")
end

-- Sizes that a file only claims to have cost no memory, deflated ones neither.
function TestRefused:test_claims_cost_nothing()
  local before = tensor.memory().used
  refused("claims.npy", npy(dictionary("'<f8'", "False", "(100000000,)"), ("\0"):rep(100)),
          "is cut short: its data should have 800000000 bytes, and 100 are there")
  tensor.save(path "claims.npz", {x = tensor.zeros(64)}, {compress = true})
  local bytes = support.read_file(path "claims.npz")
  local at = bytes:find("PK\1\2", 1, true)
  bytes = bytes:sub(1, at + 23) .. string.pack("<I4", 0xfffffff0) .. bytes:sub(at + 28)
  support.write_file(path "claims.npz", bytes)
  lu.assertErrorMsgContains("bytes cannot inflate to 4294967280", tensor.load, path "claims.npz")
  lu.assertTrue(tensor.memory().used <= before + (1 << 20))
end

-- A member that inflates to more, or less, than its directory says.
function TestRefused:test_inflated_sizes_that_lie()
  tensor.save(path "lie.npz", {x = tensor.zeros(64)}, {compress = true})
  local bytes = support.read_file(path "lie.npz")
  local at = bytes:find("PK\1\2", 1, true)
  local size = string.unpack("<I4", bytes, at + 24)
  for more, message in pairs {
    [1] = "has 1 bytes more than it says",
    [-1] = "is cut short: its data should have 256 bytes, and 255 are there",
  } do
    support.write_file(path "lie.npz", bytes:sub(1, at + 23) .. string.pack("<I4", size + more) ..
                                       bytes:sub(at + 28))
    raises(("load: '%s': 'x.npy' %s"):format(path "lie.npz", message), tensor.load, path "lie.npz")
  end
end

-- ---- damaged files, one by one ----

TestDamaged = {}

local parse = require "tensor.formats".parse
local STEP = support.under_gc and 41 or support.sanitized and 5 or 1

-- Gives the value of the bytes, or nothing, when they are refused as they should be.
local function try(format, bytes, what)
  inputs = inputs + 1
  local ok, value = pcall(parse, format, bytes)
  if ok then return value end
  lu.assertIsString(value, what)
  lu.assertStrContains(value, "load: 'bytes'")
  if value:find "%c" or not utf8.len(value) or #value > 300 then error(what .. ": " .. value) end
  return nil
end

local function changed(bytes, at, byte) return bytes:sub(1, at - 1) .. byte .. bytes:sub(at + 1) end

-- Every file that is cut short is refused; one with a wrong byte gives tensors or is refused, and
-- where there are checksums, what it gives is what was saved.
local function damage(format, bytes, original)
  for length = 0, #bytes - 1, STEP do
    equals(try(format, bytes:sub(1, length), "cut"), nil, format .. " cut to " .. length)
  end
  for at = 1, #bytes, STEP do
    local old = bytes:byte(at)
    for _, new in ipairs {old ~ 0xff, old ~ 1, old ~ 0x80, 0, 0x39} do
      local value = try(format, changed(bytes, at, string.char(new)), "byte " .. at)
      if value and original then
        for name, x in pairs(value) do assert_same(x, original[name], "byte " .. at) end
      elseif value then
        for _, x in pairs(type(value) == "table" and value or {value}) do x:totable() end
      end
    end
  end
end

local function saved(file, ...)
  tensor.save(path(file), ...)
  return support.read_file(path(file))
end

function TestDamaged:test_npy()
  damage("npy", saved("d.npy", tensor{{1, 2, 3}, {4, 5, 6}}))
  damage("npy", saved("d.npy", tensor.ones(2, 3, 2):transpose(1, 3)))
end

function TestDamaged:test_npz()
  local tensors = {a = tensor{{1, 2}, {3, 4}}, b = tensor(5)}
  damage("npz", saved("d.npz", tensors), tensors)
  damage("npz", saved("d.npz", tensors, {compress = true}), tensors)
end

function TestDamaged:test_safetensors()
  damage("safetensors", saved("d.safetensors", {a = tensor{{1, 2}, {3, 4}}, bc = tensor(5)}))
end

function TestDamaged:test_zip64()
  local bytes = support.read_file(here .. "../fuzz/corpus/npz/zip64.npz")
  local x = parse("npz", bytes).x
  equals(x:totable(), {{0, 1, 2}, {3, 4, 5}})
  damage("npz", bytes, {x = x})
end

-- Pieces of one file within another, and noise.
function TestDamaged:test_noise()
  local files = {saved("d.npy", tensor{1, 2}), saved("d.npz", {a = tensor{1, 2}}),
                 saved("d.safetensors", {a = tensor{1, 2}}), "1,2\n\"3\",nan\n"}
  for _ = 1, 4000 // STEP do
    local a, b = files[math.random(#files)], files[math.random(#files)]
    local i, j = math.random(0, #a), math.random(0, #b)
    local bytes = a:sub(1, i) .. b:sub(j + 1)
    for _ = 1, math.random(0, 3) do
      if #bytes > 0 then
        bytes = changed(bytes, math.random(#bytes), string.char(math.random(0, 255)))
      end
    end
    for _, format in ipairs {"npy", "npz", "safetensors", "csv"} do try(format, bytes, "noise") end
  end
end

-- What was opened is closed, also when it was refused.
function TestDamaged:test_nothing_stays_open()
  local pid = support.read_file "/proc/self/stat":match "%d+"
  local function open() return select(2, support.shell("ls /proc/" .. pid .. "/fd | wc -l")) end
  support.write_file(path "cut.npy", "\x93NUMPY")
  tensor.save(path "whole.npz", {x = tensor{1}})
  local before = open()
  collectgarbage "stop"
  for _ = 1, 50 do
    pcall(tensor.load, path "cut.npy")
    tensor.load(path "whole.npz")
    pcall(tensor.save, folder .. "/none/x.npy", tensor{1})
    tensor.save(path "whole.npz", {x = tensor{1}})
  end
  equals(open(), before)
  collectgarbage "restart"
end

-- ---- saves that do not come to their end ----

TestInterrupted = {}

local OLD = tensor{1, 2, 3}

local function assert_old(file, before)
  local x = tensor.load(path(file))
  assert_same(file:find "npy$" and x or x.x, OLD)
  equals(listing(), before)
end

-- Stopped at any instruction, a save has either not happened or is complete.
function TestInterrupted:test_anywhere()
  if support.under_gc then lu.skip "the hook is the collector's" end
  local new = tensor{4, 5, 6}
  for file, value in pairs {["i.npy"] = new, ["i.npz"] = {x = new}, ["i.safetensors"] = {x = new}} do
    local old = file == "i.npy" and OLD or {x = OLD}
    tensor.save(path(file), old)
    local before = listing()
    local count, stopped = 1, 0
    local ok
    repeat
      ok = pcall(function()
        debug.sethook(function() debug.sethook() error "stopped" end, "", count)
        tensor.save(path(file), value)
        debug.sethook()
      end)
      count = count + (support.slow and 301 or 23)
      if not ok then stopped = stopped + 1 end
      local x = tensor.load(path(file))
      x = file == "i.npy" and x or x.x
      if ok or not tensor.equal(x, OLD) then
        assert_same(x, new, file)
        tensor.save(path(file), old)
      end
      if not ok then equals(listing(), before) end
    until ok
    lu.assertTrue(stopped > 2, file)
  end
end

function TestInterrupted:test_disk_full()
  tensor.save(path "full.npy", OLD)
  tensor.save(path "full.npz", {x = OLD})
  local before = listing()
  local script = ([[
    local x = tensor.ones(300, 300)
    print(pcall(tensor.save, %q, x))
    print(pcall(tensor.save, %q, {x = x}))
    print(pcall(tensor.save_csv, %q, x))]]):format(path "full.npy", path "full.npz", path "f.csv")
  support.write_file(path "script", script)
  local status, out = support.shell(("ulimit -f 2; %s %s"):format(support.quote(support.program),
                                                               path "script"))
  os.remove(path "script")
  equals(status, 0)
  for line, file in out:gmatch "(false[^\n]-'([^']+)'[^\n]+)" do
    lu.assertStrContains(line, "'" .. file .. "' cannot be written: File too large")
  end
  equals(select(2, out:gsub("File too large", "")), 3)
  assert_old("full.npy", before)
  assert_old("full.npz", before)
end

-- Found when the file is about to take its place.
function TestInterrupted:test_rename_fails()
  local internal
  for i = 1, math.huge do
    local name, value = debug.getupvalue(tensor.save, i)
    if not name then break end
    if name == "internal" then internal = value end
  end
  local before = listing()
  local writer = internal.open_writer("save: 'r'", path "r")
  writer:write "text"
  support.shell("mkdir " .. path "r")
  raises("save: 'r' cannot be written: Is a directory", writer.commit, writer)
  getmetatable(writer).__close(writer)
  lu.assertErrorMsgContains("closed", writer.write, writer, "x")
  support.shell("rmdir " .. path "r")
  equals(listing(), before)
  -- and without being closed, once it is garbage
  writer = internal.open_writer("save: 'r'", path "r")
  writer = nil -- luacheck: ignore
  collectgarbage()
  equals(listing(), before)
end

function TestInterrupted:test_target_is_a_folder()
  support.shell("mkdir " .. path "f.npy")
  local before = listing()
  raises("save: '" .. path "f.npy" .. "' is a folder, not a file", tensor.save, path "f.npy", OLD)
  equals(listing(), before)
  support.shell("rmdir " .. path "f.npy")
end

-- What cannot be computed cannot be saved.
function TestInterrupted:test_a_failed_operation()
  tensor.save(path "fail.npy", OLD)
  local before = listing()
  local status, out = support.run_script(([[
    local x = tensor.ones(2, 2)
    local y = x:mm(x)
    print(pcall(tensor.save, %q, y))
    print(pcall(tensor.save, %q, {y = y + 1}))]]):format(path "fail.npy", path "fail.npz"),
    {FAULT = "mm:1"})
  equals(status, 0)
  equals(out, ("false\tSCRIPT:3: mm: injected failure (queued at SCRIPT:2)\n") ..
              ("false\tSCRIPT:4: mm: injected failure (queued at SCRIPT:2)\n"))
  assert_old("fail.npy", before)
end

function TestInterrupted:test_in_a_function_being_traced()
  local before = listing()
  local f = tensor.compile(function(x) tensor.save(path "t.npy", x + 1) return x end)
  lu.assertErrorMsgContains("a function being traced has no values to read", f, OLD)
  equals(listing(), before)
  tensor.save(path "t.npy", OLD) -- what is loaded there is constant
  f = tensor.compile(function(x) return x + tensor.load(path "t.npy") end)
  equals(f(OLD):totable(), {2, 4, 6})
  os.remove(path "t.npy")
  equals(f(OLD * 2):totable(), {3, 6, 9})
end

-- ---- the file itself ----

TestFile = {}

function TestFile:test_mode_links_and_names()
  local long = ("n"):rep(251) .. ".npy"
  support.write_file(path "script", ([[
    local folder = %q
    tensor.save(folder .. "/mode.npy", tensor{1})
    tensor.save(folder .. "/" .. %q, tensor{1})
    tensor.save(folder .. "/link.npy", tensor{2})]]):format(folder, long))
  support.shell(("ln -s target.npy %s; touch %s"):format(path "link.npy", path "target.npy"))
  local status, _, err = support.shell(("umask 027; %s %s"):format(
    support.quote(support.program), path "script"))
  equals({status, err}, {0, ""})
  os.remove(path "script")
  equals(select(2, support.shell("stat -c %a " .. path "mode.npy")), "640\n")
  equals(select(2, support.shell("readlink " .. path "link.npy")), "target.npy\n")
  equals(tensor.load(path "target.npy"):item(), 2)
  equals(tensor.load(path(long)):item(), 1)
  equals(select(2, support.shell("find " .. folder .. " -name '.*.tmp'")), "")
end

-- A relative path, and an extension in capitals.
function TestFile:test_paths()
  support.write_file(path "script", [[
    tensor.save("rel.NPY", tensor{7})
    print(tensor.load("./rel.NPY"))]])
  local status, out = support.shell(("cd %s; %s script"):format(
    folder, support.quote(select(2, support.shell("realpath " .. support.program)):match "%S+")))
  os.remove(path "script")
  equals({status, out}, {0, "tensor([7.])\n"})
end

-- The same tensors make the same bytes.
function TestFile:test_reproducible()
  local tensors = {}
  for i = 1, 20 do tensors["t" .. i] = tensor.arange(i) end
  for _, file in ipairs {"same.npz", "same.safetensors"} do
    local first = saved(file, tensors)
    equals(saved(file, {table.unpack({}, 1, 0), t1 = tensors.t1}) == first, false)
    equals(saved(file, tensors) == first, true)
  end
end

-- Saving what lies in one piece needs no second copy of it.
function TestFile:test_memory()
  local x = tensor.ones(1024, 1024)
  x:wait()
  local before = tensor.memory().peak
  local y = x:t()
  tensor.save(path "m.npy", x)
  tensor.save(path "m.npy", y)
  tensor.save(path "m.npz", {x = x}, {compress = true})
  tensor.save(path "m.safetensors", {x = x, y = y})
  equals(tensor.memory().peak, before)
end

-- Last: how much was tried.
TestZCount = {}

function TestZCount:test_inputs()
  print(("# %d damaged files"):format(inputs))
  lu.assertTrue(inputs > 10000 // STEP)
end

local status = lu.LuaUnit.run()
support.shell("rm -rf " .. folder)
os.exit(status)
