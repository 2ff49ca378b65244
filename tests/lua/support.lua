-- What the suites share: an aggressive collector when TENSORLUA_TEST_GC=1, expected values as flat
-- lists in row-major order, operands in every layout, NumPy as an oracle, and child programs.

local luaunit = require "luaunit"

local M = {}

M.under_gc = os.getenv "TENSORLUA_TEST_GC" == "1"
M.sanitized = (os.getenv "TENSORLUA_TEST_SAN" or "") ~= ""
M.slow = M.under_gc or M.sanitized
M.synchronous = os.getenv "TENSORLUA_SYNC" == "1"

-- A cycle starts at once and works at every few bytes, so collections come within C functions too;
-- the hook adds whole steps between any two lines.
if M.under_gc then
  collectgarbage("incremental", 1, 1000, 8)
  debug.sethook(function() collectgarbage "step" end, "", 1000)
end

math.randomseed(20240607) -- the same operands in every run

-- Calls f with 1, 2 and 4 threads, and puts the number back.
function M.each_thread_count(f)
  local before = tensor.get_num_threads()
  local ok, message = pcall(function()
    for _, threads in ipairs {1, 2, 4} do
      tensor.set_num_threads(threads)
      f(threads)
    end
  end)
  tensor.set_num_threads(before)
  if not ok then error(message, 0) end
end

-- ---- values ----

function M.numel(shape)
  local count = 1
  for _, size in ipairs(shape) do count = count * size end
  return count
end

local function append_leaves(value, list)
  if type(value) ~= "table" then
    list[#list + 1] = value
  else
    for i = 1, #value do append_leaves(value[i], list) end
  end
  return list
end

-- The elements of a tensor, or of nested tables.
function M.flat(value)
  return append_leaves(type(value) == "table" and value or value:totable(), {})
end

function M.round(dtype, x)
  return dtype == "float32" and string.unpack("f", string.pack("f", x)) or x
end

-- The bits of a number as an integer whose order is that of the numbers; -0 is 0.
local function ordinal(dtype, x)
  local bits = dtype == "float32" and string.unpack("i4", string.pack("f", x))
               or string.unpack("i8", string.pack("d", x))
  if bits >= 0 then return bits end
  return (dtype == "float32" and -0x80000000 or math.mininteger) - bits
end

-- How many representable numbers lie between two; 0 for two nans.
function M.distance(dtype, x, y)
  if x ~= x or y ~= y then return (x ~= x and y ~= y) and 0 or math.huge end
  local a, b = ordinal(dtype, x), ordinal(dtype, y)
  if (a < 0) ~= (b < 0) then return math.abs(a + 0.0) + math.abs(b + 0.0) end
  return math.abs(a - b)
end

function M.shape_text(shape) return "{" .. table.concat(shape, ", ") .. "}" end

-- Asks that a tensor has this shape and dtype, and values within `ulps` of those in the list.
-- Without ulps the bits must agree, except a nan's; so 0 is not -0.
function M.assert_values(t, shape, expected, what, ulps)
  what = what or "values"
  luaunit.assertEquals(t.shape, shape, what .. ": shape")
  local got = M.flat(t)
  luaunit.assertEquals(#got, #expected, what .. ": count")
  for i = 1, #got do
    local x, y = got[i], expected[i]
    local distance = M.distance(t.dtype, x, y)
    local zero_sign_differs = not ulps and x == 0 and y == 0 and 1 / x ~= 1 / y
    if distance > (ulps or 0) or zero_sign_differs then
      error(("%s: element %d of %s is %.17g, not %.17g, %s ulps away"):format(what, i,
        M.shape_text(shape), x, y, distance), 2)
    end
  end
end

-- ---- operands ----

-- A tensor of a shape from a flat list.
function M.tensor(shape, data, dtype)
  dtype = dtype or "float32"
  if #data == 0 then return tensor.zeros(shape, {dtype = dtype}) end
  return tensor(data, {dtype = dtype}):reshape(shape)
end

-- Numbers between low and high, of a dtype.
function M.random_data(count, low, high, dtype)
  local data = {}
  for i = 1, count do
    data[i] = M.round(dtype or "float32", low + (high - low) * math.random())
  end
  return data
end

function M.random_integers(count, low, high)
  local data = {}
  for i = 1, count do data[i] = math.random(low, high) + 0.0 end
  return data
end

local NAN = 0 / 0

-- All of a larger tensor of nans but for a range in each dimension.
local function ranged(shape, data, dtype, step)
  local outer, key = {}, {}
  for d, size in ipairs(shape) do
    outer[d] = size * step + 2
    key[d] = size > 0 and {2, 2 + (size - 1) * step, step} or {2, 1}
  end
  local whole = tensor.full(outer, NAN, {dtype = dtype})
  whole[key] = M.tensor(shape, data, dtype)
  return whole[key]
end

-- The last two dimensions lie the other way round in memory.
local function transposed(shape, data, dtype)
  local n = #shape
  return M.tensor(shape, data, dtype):transpose(n - 1, n):clone():transpose(n - 1, n)
end

-- One of the rows of a tensor with one more dimension, in the middle where there is one.
local function selected(shape, data, dtype)
  local at = #shape > 0 and 2 or 1
  local outer, key = {table.unpack(shape)}, {}
  table.insert(outer, at, 3)
  for d = 1, #outer do key[d] = d == at and 2 or {} end
  local whole = tensor.full(outer, NAN, {dtype = dtype})
  whole[key] = M.tensor(shape, data, dtype)
  return whole[key]
end

-- The same values in every layout, as {name, tensor} pairs.
function M.layouts(shape, data, dtype)
  local list = {
    {"contiguous", M.tensor(shape, data, dtype)},
    {"selected", selected(shape, data, dtype)},
  }
  if #shape > 0 then
    list[#list + 1] = {"ranged", ranged(shape, data, dtype, 1)}
    list[#list + 1] = {"stepped", ranged(shape, data, dtype, 2)}
  end
  if #shape > 1 then list[#list + 1] = {"transposed", transposed(shape, data, dtype)} end
  return list
end

function M.any_layout(shape, data, dtype)
  local list = M.layouts(shape, data, dtype)
  return list[math.random(#list)][2]
end

-- The shape that two shapes broadcast to, and a function that reads a flat list of values of
-- shape `from` at a place (from 0) of the broadcast shape.
function M.broadcast(a, b)
  local shape, ndim = {}, math.max(#a, #b)
  for d = 1, ndim do
    local x, y = a[d - ndim + #a] or 1, b[d - ndim + #b] or 1
    shape[d] = x == 1 and y or x
  end
  return shape
end

function M.reader(shape, from, data)
  local strides, stride = {}, 1
  for d = #from, 1, -1 do
    strides[d - #from + #shape] = from[d] == 1 and 0 or stride
    stride = stride * from[d]
  end
  return function(place)
    local at = 1
    for d = #shape, 1, -1 do
      at = at + place % shape[d] * (strides[d] or 0)
      place = place // shape[d]
    end
    return data[at]
  end
end

-- ---- other programs ----

local lowest = 0
while arg[lowest - 1] do lowest = lowest - 1 end
M.program = os.getenv "TENSORLUA" or arg[lowest]

function M.quote(word) return "'" .. word:gsub("'", [['\'']]) .. "'" end

function M.read_file(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

function M.write_file(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- A shell command's exit status, standard output and standard error.
function M.shell(command)
  local out, err = os.tmpname(), os.tmpname()
  local _, how, status = os.execute(("{ %s; } >%s 2>%s"):format(command, out, err))
  local out_text, err_text = M.read_file(out), M.read_file(err)
  os.remove(out)
  os.remove(err)
  return how == "signal" and 128 + status or status, out_text, err_text
end

-- Runs a script's text in a program of its own, which sees of the TENSORLUA_ variables only those
-- in `env`; its messages call it SCRIPT.
function M.run_script(text, env)
  local path = os.tmpname()
  M.write_file(path, text)
  local words = {"env"}
  for _, name in ipairs {"THREADS", "SYNC", "DEVICE", "MEMORY", "FAULT", "ISA"} do
    words[#words + 1] = "-u TENSORLUA_" .. name
  end
  for name, value in pairs(env or {}) do
    words[#words + 1] = M.quote(("TENSORLUA_%s=%s"):format(name, value))
  end
  words[#words + 1] = M.quote(M.program)
  words[#words + 1] = path
  local status, out, err = M.shell(table.concat(words, " "))
  os.remove(path)
  local pattern = path:gsub("%p", "%%%0")
  return status, out:gsub(pattern, "SCRIPT"), (err:gsub(pattern, "SCRIPT"))
end

local python -- of the system before one on the path; false where neither has NumPy

-- The command that runs a Python with NumPy, or false.
function M.python()
  for _, command in ipairs(python == nil and {"/usr/bin/python3", "python3"} or {}) do
    python = python or M.shell(command .. " -c 'import numpy'") == 0 and command
  end
  return python
end

-- Runs Python text with numpy as np, floats as `data`, a list read from hexadecimal; gives the
-- floats that it leaves in the list `result`, or nil where there is no NumPy.
function M.numpy(code, data)
  if not M.python() then return nil end
  local text = {}
  for i = 1, #data do text[i] = ("%a"):format(data[i]) end
  local input, script = os.tmpname(), os.tmpname()
  M.write_file(input, table.concat(text, "\n"))
  M.write_file(script, ("import sys, numpy as np\nnp.seterr(all='ignore')\n" ..
    "data = [float.fromhex(line) for line in open(%q)]\n%s\n" ..
    "print('\\n'.join(float(x).hex() for x in result))\n"):format(input, code))
  local status, out, err = M.shell(python .. " " .. script)
  os.remove(input)
  os.remove(script)
  assert(status == 0, err)
  local result = {}
  for word in out:gmatch "%S+" do
    local special = {inf = math.huge, ["-inf"] = -math.huge, nan = NAN, ["-nan"] = NAN}
    result[#result + 1] = special[word] or tonumber(word)
  end
  return result
end

-- ---- errors ----

-- Asks that f raises a string that is, behind the position, exactly this; gives all of it.
function M.assert_raises(expected, f, ...)
  local ok, message = pcall(f, ...)
  luaunit.assertFalse(ok, "no error, but should be: " .. expected)
  luaunit.assertIsString(message)
  luaunit.assertEquals((message:gsub("^[^:]+:%d+: ", "")), expected)
  return message
end

return M
