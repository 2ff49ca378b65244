-- Bad input: every function of the library and every metamethod with every combination of bad
-- values.  Each call returns, or raises a sentence that begins with the function's name; nothing
-- crashes or hangs, and what was there before is as it was.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

-- Legal sizes must stay small, and some functions write files: so the suite runs again under a
-- budget and in a folder of its own.
if os.getenv "TENSORLUA_MEMORY" ~= "64M" then
  local words = {}
  for i = 1, #arg do words[i] = support.quote(arg[i]) end
  local _, how, status = os.execute(([[
    program=$(realpath "$(command -v %s)") suite=$(realpath %s) folder=$(mktemp -d)
    cd "$folder" && TENSORLUA=$program TENSORLUA_MEMORY=64M "$program" "$suite" %s
    status=$?
    rm -r "$folder"
    exit $status]]):format(support.quote(support.program), support.quote(arg[0]),
                           table.concat(words, " ")))
  os.exit(how == "signal" and 128 + status or status)
end

local huge, nan = math.huge, 0 / 0

local closed = tensor.ones(2, 3)
do local _ <close> = closed end

-- Nothing here may be written to: the contents are compared at the end.
local function make_tensors()
  return {
    scalar = tensor(3),
    vector = tensor{1, 2, 3},
    matrix = tensor{{1, 2, 3}, {4, 5, 6}},
    double = tensor({{1, 2}, {3, 4}}, {dtype = "float64"}),
    empty = tensor.zeros(0, 3),
    deep = tensor.ones(1, 2, 1, 2, 1, 2, 1, 2),
    view = tensor.arange(12):reshape(3, 4)[{{1, 3, 2}, {2, 4}}]:t(),
  }
end

local function callback() end

local circle = {}
circle[1] = circle

-- Values that are often wrong, as {text, value}; tensors come fresh from the table given.
local function bad_values(tensors)
  local list = {
    {"nil", nil}, {"true", true}, {"false", false}, {"'text'", "text"}, {"'2'", "2"},
    {"'float64'", "float64"}, {"{}", {}}, {"{1, 2}", {1, 2}}, {"{{1}, {2, 3}}", {{1}, {2, 3}}},
    {"{-1}", {-1}}, {"{'a'}", {"a"}}, {"{{}}", {{}}}, {"{{1, 2}, 1}", {{1, 2}, 1}},
    {"circle", circle}, {"{dtype='float64'}", {dtype = "float64"}}, {"{dtype=1}", {dtype = 1}},
    {"{device='x'}", {device = "x"}}, {"{other=1}", {other = 1}}, {"{[0.5]=1}", {[0.5] = 1}},
    {"function", callback}, {"print", print}, {"coroutine", coroutine.create(callback)},
    {"io.stdout", io.stdout}, {"library", tensor},
    {"nan", nan}, {"inf", huge}, {"-inf", -huge}, {"1e308", 1e308}, {"0.5", 0.5}, {"0", 0},
    {"1", 1}, {"2", 2}, {"-1", -1}, {"-3", -3}, {"2^40", 1 << 40}, {"2^62", 1 << 62},
    {"mininteger", math.mininteger}, {"maxinteger", math.maxinteger}, {"2.0^63", 2.0 ^ 63},
    {"closed", closed}, {"proxy", setmetatable({}, {__index = callback, __len = callback})},
    {"unprintable", setmetatable({}, {__tostring = function() error "unprintable" end})},
    {"misprinted", setmetatable({}, {__tostring = function() return {} end})},
  }
  for name, x in pairs(tensors) do list[#list + 1] = {name, x} end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- Fewer, for two arguments at a time under a sanitizer; and for three at a time.
local SOME = {["nil"] = true, ["true"] = true, ["'text'"] = true, ["{}"] = true,
              ["{1, 2}"] = true, ["{dtype='float64'}"] = true, nan = true, ["0"] = true,
              ["2"] = true, ["-1"] = true, maxinteger = true, mininteger = true, matrix = true,
              closed = true, scalar = true, unprintable = true, empty = true}

local FOR_THREE = {["nil"] = true, ["'text'"] = true, ["{1, 2}"] = true,
                   ["{dtype='float64'}"] = true, nan = true, ["2"] = true, ["-1"] = true,
                   maxinteger = true, mininteger = true, matrix = true, closed = true,
                   empty = true}

-- Fewer still: under an aggressive collector each call costs a hundred times as much.
local FEW = {["nil"] = true, ["'text'"] = true, ["{1, 2}"] = true, nan = true, ["2"] = true,
             maxinteger = true, matrix = true, closed = true}

-- ---- what is called ----

-- Functions by the name that their messages begin with, with those that are written in Lua.
require "tensor.functions"
local functions = {}
for name, f in pairs(tensor) do
  if type(f) == "function" then functions[#functions + 1] = {name, f} end
end
functions[#functions + 1] = {"tensor", function(...) return tensor(...) end}

-- Metamethods say the operator's name, or its sign where it has none.
local METAMETHOD_NAMES = {
  __add = "add", __sub = "sub", __mul = "mul", __div = "div", __idiv = "floor_divide",
  __mod = "remainder", __pow = "pow", __unm = "neg", __index = "index", __newindex = "index",
  __len = "#", __lt = "<", __le = "<=", __eq = "equal", __pairs = "pairs",
  __tostring = "tostring", __concat = "..", __band = "bitwise_and", __bor = "bitwise_or",
  __bxor = "bitwise_xor", __bnot = "bitwise_not", __shl = "bitwise_left_shift",
  __shr = "bitwise_right_shift",
}
local CLOSERS = {__gc = true, __close = true} -- these would close the tensors

for event, f in pairs(debug.getmetatable(tensor(1))) do
  if type(f) == "function" and not CLOSERS[event] then
    functions[#functions + 1] = {METAMETHOD_NAMES[event] or event, f, event}
  end
end
table.sort(functions, function(a, b) return a[1] < b[1] end)

-- What is raised by something of the caller's own, which the library only passes on: a __tostring
-- that fails where text is asked for, and a function to measure.
local function is_passed_on(name, message)
  return message:find("unprintable", 1, true)
         or name == ".." and message:find("tostring", 1, true)
         or name == "benchmark" and message:find("tensor: argument 1 must be", 1, true)
end

-- ---- calling ----

-- Complaints, one for each function and kind of message, so that a fault shows once.
local function new_complaints()
  local seen, list = {}, {}
  return function(name, message, call)
    local kind = name .. message:gsub("%-?[%d.]+", "0"):gsub("0x%x+", "0"):sub(1, 30)
    if not seen[kind] then
      seen[kind] = true
      list[#list + 1] = ("%s: %s"):format(call, message)
    end
  end, list
end

local function describe(name, values, count)
  local texts = {}
  for i = 1, count do texts[i] = values[i][1] end
  return name .. "(" .. table.concat(texts, ", ") .. ")"
end

-- Calls f with the values, and looks at what it raises.
local function call(entry, values, count, complain, complain_of_text)
  local arguments = {}
  for i = 1, count do arguments[i] = values[i][2] end
  local ok, message = pcall(entry[2], table.unpack(arguments, 1, count))
  if ok then return end
  local name = entry[1]
  if type(message) ~= "string" then
    complain(name, "raised a " .. type(message), describe(name, values, count))
  elseif not is_passed_on(name, message) then
    -- An index's message may begin with the position of the call.
    if not message:find(name .. ": ", 1, true) then
      complain(name, message, describe(name, values, count))
    end
    -- A size may begin with 0x as well, so an address is one behind the word that Lua writes there.
    local address = message:find "table: 0x" or message:find "function: 0x" or
      message:find "thread: 0x" or message:find "userdata: 0x" or message:find "%(0x"
    if address or message:find("\n", 1, true) or #message > 300 or message:find "%(nil%)" then
      complain_of_text(name, message:match "[^\n]*", describe(name, values, count))
    end
  end
end

local function each_combination(list, count, f)
  local values = {}
  local function fill(depth)
    if depth > count then return f(values) end
    for _, value in ipairs(list) do
      values[depth] = value
      fill(depth + 1)
    end
  end
  fill(1)
end

local function assert_sane()
  local x = tensor{{1, 2}, {3, 4}}
  equals(((x + 1):mm(x)):totable(), {{11, 16}, {19, 28}})
  sync()
  equals(#tensor.zeros(1000), 1000)
end

-- Calls everything with `count` arguments from a choice of values; gives the complaints.
local function call_all(count, choose)
  local complain, complaints = new_complaints()
  local complain_of_text, ugly = new_complaints()
  local print_before, threads = print, tensor.get_num_threads()
  print = callback -- luacheck: ignore
  for _, entry in ipairs(functions) do
    local tensors = make_tensors() -- in-place functions may write to them
    local shapes = {}
    for name, x in pairs(tensors) do shapes[name] = x.shape end
    local list = {}
    for _, value in ipairs(bad_values(tensors)) do
      if not choose or choose[value[1]] then list[#list + 1] = value end
    end
    each_combination(list, count, function(values)
      call(entry, values, count, complain, complain_of_text)
    end)
    for name, x in pairs(tensors) do
      if not pcall(equals, x.shape, shapes[name]) then
        complain(entry[1], "changed the shape of an argument", entry[1])
      end
    end
    if not pcall(assert_sane) then complain(entry[1], "left something broken", entry[1]) end
  end
  print = print_before -- luacheck: ignore
  tensor.set_num_threads(threads)
  assert_sane()
  return complaints, ugly
end

local function assert_none(complaints)
  if #complaints > 0 then
    error(("%d complaints\n  %s"):format(#complaints, table.concat(complaints, "\n  ", 1,
                                                                   math.min(#complaints, 40))), 0)
  end
end

local ugly_all = {}

local function test_count(count, choose)
  return function()
    local complaints, ugly = call_all(count, choose)
    table.move(ugly, 1, #ugly, #ugly_all + 1, ugly_all)
    assert_none(complaints)
  end
end

TestSystematic = {}
TestSystematic.test_0_arguments = test_count(0)
TestSystematic.test_1_argument = test_count(1)
TestSystematic.test_2_arguments = test_count(2, support.under_gc and FEW or support.slow and SOME)
if not support.slow then TestSystematic.test_3_arguments = test_count(3, FOR_THREE) end

-- One line of moderate length, without addresses: a value that does not help is named by its type.
function TestSystematic:test_9_messages_read_well()
  assert_none(ugly_all)
end

TestCounts = {}

-- More arguments than a function can use are refused, by all of them.
function TestCounts:test_too_many_arguments()
  local complain, complaints = new_complaints()
  local GOOD = { -- first arguments that the function would take
    numel = 1, dim = 1, item = 1, is_ready = 1, is_contiguous = 1, wait = 1, tostring = 1,
    totable = 1, t = 1, clone = 1, zero_ = 1, sum = 1, initial_seed = 0, get_num_threads = 0,
    exp = 1, add = 2, equal = 2, mm = 2, maximum = 2,
  }
  for name, count in pairs(GOOD) do
    local arguments = {}
    for i = 1, count do arguments[i] = tensor{{1}} end
    for i = count + 1, count + 4 do arguments[i] = 7 end
    local ok, message = pcall(tensor[name], table.unpack(arguments))
    if ok or not message:find(name .. ": ", 1, true) then
      complain(name, ok and "ignores four arguments too many" or message, name)
    end
  end
  assert_none(complaints)
end

TestMessages = {}

function TestMessages:test_use_after_close()
  for name, f in pairs(tensor) do
    if type(f) == "function" and tensor{1}[name] then
      local ok, message = pcall(f, closed, closed, closed)
      equals(ok, false, name)
      lu.assertStrContains(message, name .. ": ")
      lu.assertStrContains(message, "closed")
    end
  end
  for _, use in ipairs {
    function() return closed + 1 end, function() return 1 - closed end,
    function() return -closed end, function() return closed[1] end,
    function() closed[1] = 2 end, function() return #closed end,
    function() return closed == tensor{1} end, function() return closed < 1 end,
    function() return tostring(closed) end, function() return "" .. closed end,
    function() return pairs(closed) end, function() return closed.shape end,
    function() return tensor{1} + closed end,
  } do
    lu.assertErrorMsgContains("has been closed", use)
  end
end

-- A bad argument that is itself a tensor is not printed, which would wait for its values.
function TestMessages:test_a_tensor_where_a_size_belongs()
  local big = tensor.ones(300, 300)
  for _, f in ipairs {tensor.zeros, tensor.full, tensor.eye, tensor.arange, tensor.manual_seed} do
    local ok, message = pcall(f, big)
    equals(ok, false)
    equals(message:find("\n", 1, true), nil, message)
  end
end

function TestMessages:test_sizes()
  local message = select(2, pcall(tensor.zeros, nan))
  lu.assertStrMatches(message, ".*zeros: size %-?nan is not an integer")
  raises("zeros: size -9223372036854775808 is negative", tensor.zeros, math.mininteger)
  raises("zeros: a tensor of 9223372036854775807 elements is too large", tensor.zeros,
         math.maxinteger)
  raises("zeros: a tensor of 3037000500x3037000500 elements is too large", tensor.zeros, 3037000500,
         3037000500)
  raises("ones: out of memory: 4398046511104 bytes wanted, 0 of 67108864 in use",
         function() collectgarbage() sync() return tensor.ones(1 << 40) end)
  raises("full: a tensor of 1152921504606846976x2 elements is too large", tensor.full,
         {1 << 60, 2}, 1)
  raises("eye: a tensor of 2147483648x2147483648 elements is too large", tensor.eye, 1 << 31,
         1 << 31, {dtype = "float64"})
  -- The product of the sizes that are not 0 has to fit too, for the strides.
  equals(tensor.zeros(1 << 40, 0).shape, {1 << 40, 0})
  raises("zeros: a tensor of 1099511627776x0x1099511627776 elements is too large", tensor.zeros,
         1 << 40, 0, 1 << 40)
end

function TestMessages:test_result_too_large()
  local column, row = tensor.zeros(1 << 16, 1), tensor.zeros(1, 1 << 16)
  lu.assertErrorMsgContains("add: out of memory: 17179869184 bytes wanted, ",
                            function() return column + row end)
  lu.assertErrorMsgContains("mm: out of memory: 17179869184 bytes wanted, ",
                            function() return column:mm(row) end)
  assert_sane()
end

function TestMessages:test_threads()
  raises("set_num_threads: 0 is not a number from 1 to 1024", tensor.set_num_threads, 0)
  raises("set_num_threads: -1 is not a number from 1 to 1024", tensor.set_num_threads, -1)
  raises("set_num_threads: 4294967297 is not a number from 1 to 1024", tensor.set_num_threads,
         (1 << 32) + 1)
  raises("set_num_threads: argument 1 must be an integer, not missing", tensor.set_num_threads)
end

-- Every error stands at the line that made the call.
function TestMessages:test_position()
  local x = tensor.ones(2, 3)
  for i, f in ipairs {
    function() return x:mm(x) end, function() return x + {} end, function() return x[9] end,
    function() x[9] = 1 end, function() return x:sum(9) end, function() return x:reshape(7) end,
    function() return tensor{{1}, {}} end, function() return tensor.zeros(-1) end,
    function() return x:item() end, function() return x < 1 end, function() return #x:sum() end,
    function() return x:add_("a") end, function() return x:to "x" end,
    function() return benchmark "x" end, function() return sync "x" end,
    function() return pairs(x:sum()) end, function() return x .. closed end,
  } do
    local message = select(2, pcall(function()
      f()
    end))
    lu.assertStrMatches(message, ".*test_bad_input%.lua:%d+: .*", nil, nil, i)
  end
end

TestHostile = {}

-- A metatable may be looked at through debug, and its functions called with anything.
function TestHostile:test_closers()
  local meta = debug.getmetatable(tensor(1))
  for event in pairs(CLOSERS) do
    if meta[event] then
      for _, value in ipairs(bad_values{}) do pcall(meta[event], value[2]) end
      local x = tensor{1}
      meta[event](x)
      meta[event](x)
      lu.assertFalse(pcall(x.item, x))
    end
  end
  assert_sane()
end

function TestHostile:test_a_foreign_userdata_of_any_size()
  for _, value in ipairs {io.stdout, io.tmpfile(), coroutine.create(callback)} do
    lu.assertFalse(pcall(tensor.exp, value))
    lu.assertFalse(pcall(tensor.add, tensor{1}, value))
    lu.assertFalse(pcall(debug.getmetatable(tensor{1}).__index, value, 1))
  end
end

-- Tables that answer differently each time, or change while they are read.
function TestHostile:test_strange_tables()
  local strange = setmetatable({}, {__len = function() return 1 << 40 end,
                                    __index = function(_, i) return i end})
  pcall(tensor, strange)
  pcall(tensor.zeros, strange)
  pcall(function() return tensor{1}[strange] end)
  local weak = setmetatable({{1}, {2}}, {__mode = "v"})
  pcall(tensor, weak)
  assert_sane()
end

function TestHostile:test_huge_tables()
  local list = {}
  for i = 1, 10000 do list[i] = i end
  lu.assertErrorMsgContains("zeros: 10000 dimensions are too many: at most 8", tensor.zeros, list)
  lu.assertErrorMsgContains("index: 10000 indices are too many",
                            function() return tensor{1}[list] end)
  lu.assertErrorMsgContains("zeros: ", tensor.zeros, table.unpack(list, 1, 200))
end

-- An error inside a call of the library, within coroutines and deep stacks, leaves it usable.
function TestHostile:test_errors_anywhere()
  local function deep(n)
    if n == 0 then return tensor.ones(2):mm(3) end
    return (deep(n - 1)) -- not a tail call
  end
  pcall(deep, 150)
  local co = coroutine.wrap(function()
    pcall(tensor.zeros, -1)
    coroutine.yield(tensor{1} + 1)
    error(tensor{3})
  end)
  equals(co():item(), 2)
  local ok, object = pcall(co)
  equals({ok, object:item()}, {false, 3})
  local function overflow() return tensor{1} + overflow() end
  if not support.under_gc then pcall(overflow) end -- each step would look at all of the stack
  assert_sane()
end

function TestHostile:test_globals_taken_away()
  local status, out, err = support.run_script [[
    local print, pcall, t = print, pcall, tensor
    for name in pairs(_G) do if name ~= "_G" then _G[name] = nil end end
    string, table, math = nil, nil, nil
    print((t{1, 2} + 1):sum():item())
    pcall(print, t{1, 2} + 1)
    pcall(t.benchmark, "x", function() end)
    print((pcall(t.zeros, -1)))
    t.sync()]]
  equals({status, err, out}, {0, "", "5.0\ntensor([2., 3.])\nfalse\n"})
end

os.exit(lu.LuaUnit.run())
