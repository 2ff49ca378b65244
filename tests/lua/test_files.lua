-- Tensors in files: what is saved is loaded again, by NumPy too; raw bytes and CSV.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local files = require "files"
local codec = require "tensor.codec"
local equals, raises, assert_same = lu.assertEquals, support.assert_raises, files.assert_same
local folder, path, listing, has = files.folder, files.path, files.listing, files.has

local function is_float(dtype) return dtype:find "float" ~= nil end

-- Values that each dtype has; the same ones for all floats, and for all integers.
local function values_of(dtype, count)
  local list = {}
  for i = 1, count do
    local value = (i * 7 % 23 - 5) / (is_float(dtype) and 8 or 1)
    if dtype == "uint8" then value = math.abs(value) end
    if dtype == "bool" then value = value > 0 end
    list[i] = value
  end
  return list
end

local function make(shape, dtype)
  return support.tensor(shape, values_of(dtype, support.numel(shape)), dtype)
end

local SHAPES = {{}, {1}, {5}, {0}, {2, 3}, {0, 3}, {3, 1, 2}, {2, 3, 4, 2}}

-- Every layout of every shape of every dtype that this build has, as {name, tensor}.
local function all_tensors()
  local list = {}
  for _, row in ipairs(codec.DTYPES) do
    for _, shape in ipairs(has(row.name) and SHAPES or {}) do
      local numbers = is_float(row.name) and values_of(row.name, support.numel(shape))
      local name = row.name .. support.shape_text(shape)
      for _, layout in ipairs(numbers and support.layouts(shape, numbers, row.name) or
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
  for _, name in ipairs {"", "a/b", "x.npy", "é", "with space", '"quoted"\\', "line\nbreak",
                         "\1"} do
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
  local found, at, loaded = {}, 1, 0
  for file in listing():gmatch "%d+_%w+%.npy" do found[tonumber(file:match "%d+")] = file end
  local rows = codec.by "npy"
  while expected[at] do
    local n, shape, values = expected[at] // 1 | 0, {}, {}
    for d = 1, expected[at + 1] // 1 | 0 do shape[d] = expected[at + 1 + d] // 1 | 0 end
    at = at + 2 + #shape
    for i = 1, support.numel(shape) do values[i] = expected[at + i - 1] end
    at = at + #values
    local file = found[n]
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
      tensor.save_csv(path "y.csv", x)
      equals(support.read_file(path "y.csv"), ("%d,%d\n1,0\n"):format(low, high))
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
    local first = files.saved(file, tensors)
    lu.assertTrue(files.saved(file, {t1 = tensors.t1}) ~= first)
    lu.assertTrue(files.saved(file, tensors) == first)
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

files.run()
