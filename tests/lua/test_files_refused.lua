-- Files that are not as they should be are refused in a sentence, whatever is wrong with them; a
-- save that does not come to its end leaves the old file, and nothing else.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local files = require "files"
local equals, raises, assert_same = lu.assertEquals, support.assert_raises, files.assert_same
local path, listing, has, saved = files.path, files.listing, files.has, files.saved

local inputs = 0 -- damaged ones that were tried

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
    ["\x93NUMPY\1\0\xff\xff{}"] =
      "is cut short: its header should have 65535 bytes, and 2 are there",
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
  raises(("load: '%s': a tensor of 4294967296x4294967296 elements is too large")
         :format(path "bad.npy"), tensor.load, path "bad.npy")
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
  local _, seeds = support.shell("ls " .. here .. "../fuzz/corpus/*/*")
  local count = 0
  for file in seeds:gmatch "%S+" do
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
    pcall(tensor.save, path "none/x.npy", tensor{1})
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
  for _, file in ipairs {"i.npy", "i.npz", "i.safetensors"} do
    local value = file == "i.npy" and new or {x = new}
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
      count = count + 7
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
  writer:begin(true)
  writer:write(("text"):rep(100000)) -- more than waits in buffers
  lu.assertNotEquals(listing(), before)
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
  equals(out, "false\tSCRIPT:3: save: mm: injected failure (queued at SCRIPT:2)\n" ..
              "false\tSCRIPT:4: save: mm: injected failure (queued at SCRIPT:2)\n")
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

-- Last: how much was tried.
TestZCount = {}

function TestZCount:test_inputs()
  print(("# %d damaged files"):format(inputs))
  lu.assertTrue(inputs > 10000 // STEP)
end

files.run()
