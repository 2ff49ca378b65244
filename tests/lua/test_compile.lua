-- A compiled function is its function: the same bits at each call, in whatever state the program
-- is; and what it cannot repeat is an error that says so.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises, contains = lu.assertEquals, support.assert_raises, lu.assertStrContains

-- Asks for the same tensors, to the bit and in shape and dtype, or equal plain values.
local function same(got, expected, what)
  equals(got.n, expected.n, what)
  for i = 1, expected.n do
    local a, b = got[i], expected[i]
    if type(b) == "userdata" then
      equals(a.dtype, b.dtype, what)
      equals(a:stride(), b:stride(), what)
      support.assert_values(a, b.shape, support.flat(b), what)
    else
      equals(a, b, what)
      equals(math.type(a), math.type(b), what)
    end
  end
end

-- Calls f and its compiled self from the same random stream, with copies of the same arguments;
-- asks for the same results and the same arguments afterwards.
local function agree(f, g, make, what)
  tensor.manual_seed(3)
  local mine = make()
  local expected = table.pack(f(table.unpack(mine, 1, mine.n)))
  tensor.manual_seed(3)
  local theirs = make()
  local got = table.pack(g(table.unpack(theirs, 1, theirs.n)))
  same(got, expected, what)
  same(theirs, mine, what)
end

local function counted(f)
  local calls = {0}
  return tensor.compile(function(...)
    calls[1] = calls[1] + 1
    return f(...)
  end), calls
end

-- ---- results ----

TestResults = {}

function TestResults:test_the_function_runs_once()
  local g, calls = counted(function(x) return (x * 2 + 1):tanh() end)
  for i = 1, 5 do
    local x = tensor.randn(3, 4)
    lu.assertTrue(g(x) == (x * 2 + 1):tanh())
  end
  equals(calls[1], 1)
end

function TestResults:test_of_every_kind()
  local w = tensor.arange(6):reshape(2, 3)
  local function f(x)
    local y = x + w
    return y, y:t(), y[2], x, x:t(), x[{ {1, 2}, {2, 3} }], w, w[1], y, tensor{1, 2}, nil, 3, 3.0,
      "text\0more", true, false, tensor.zeros(0, 3), nil
  end
  local g, calls = counted(f)
  for _ = 1, 3 do
    agree(f, g, function() return {n = 1, tensor.randn(2, 3)} end)
    local x = tensor.ones(2, 3)
    lu.assertTrue(rawequal(select(4, g(x)), x))
  end
  equals(calls[1], 1)
  equals(select("#", tensor.compile(function() end)()), 0)
end

-- Views of one value stay views of one value, and each call has its own.
function TestResults:test_aliases()
  local g = tensor.compile(function(x)
    local y, c = x * 1, tensor{5, 5}
    return y, y[1], x[2], c
  end)
  local x = tensor.zeros(2, 2)
  for round = 1, 3 do
    local y, row, of_x, c = g(x)
    row:fill_(7)
    of_x:fill_(round)
    c:add_(1)
    equals(y:totable(), {{7, 7}, {round - 1, round - 1}})
    equals(x:totable(), {{0, 0}, {round, round}})
    equals(c:totable(), {6, 6})
  end
end

function TestResults:test_constants_are_kept_as_they_were()
  local value = 1
  local g = tensor.compile(function(x)
    local c, large = tensor{value, 2, 3}, tensor.ones(100, 3)
    c:add_(x)
    large:add_(c)
    return c, large:sum(1), tensor{value}
  end)
  for _ = 1, 3 do
    local c, sums, unused = g(tensor{1, 1, 1})
    equals({c:totable(), sums:totable(), unused:totable()}, {{2, 3, 4}, {300, 400, 500}, {1}})
    value = 100
  end
end

function TestResults:test_arguments_and_captured_tensors_are_written()
  local state, rows = tensor.zeros(3), tensor.arange(6):reshape(2, 3)
  local g = tensor.compile(function(x)
    state:add_(x)
    x:mul_(2)
    x[1] = 9
    rows[2] = x
    return state + rows
  end)
  local expected = 0
  for i = 1, 4 do
    local x = tensor.full({3}, i)
    expected = expected + i
    local y = g(x)
    equals(x:totable(), {9, 2 * i, 2 * i})
    equals(state:totable(), {expected, expected, expected})
    equals(rows[2]:totable(), x:totable())
    lu.assertTrue(y == state + rows)
    state:add_(1) -- seen by the next call
    expected = expected + 1
  end
end

function TestResults:test_random_operations_draw_on()
  local function f(x)
    local a = tensor.randn(5)
    local b = tensor.rand(3, {dtype = "float64"})
    return a + x, b, tensor.randn(1)
  end
  local g = tensor.compile(f)
  local function run(h)
    tensor.manual_seed(11)
    local list = {}
    for i = 1, 4 do
      for _, y in ipairs {h(tensor.full({5}, i))} do list[#list + 1] = y:totable() end
      list[#list + 1] = tensor.randn(2):totable()
    end
    tensor.manual_seed(12)
    list[#list + 1] = h(tensor.zeros(5)):totable()
    return list
  end
  equals(run(g), run(f))
  equals(run(g), run(f))
end

-- ---- signatures ----

TestSignatures = {}

function TestSignatures:test_what_makes_another_trace()
  local g, calls = counted(function(x, n) return x, n end)
  local function traces(expected, ...)
    local before = calls[1]
    for _ = 1, 2 do g(...) end
    equals(calls[1] - before, expected)
  end
  local x = tensor.ones(2, 3)
  traces(1, x)
  traces(0, tensor.zeros(2, 3))
  traces(0, tensor.ones(5, 3)[{ {2, 3}, {} }])
  traces(1, tensor.ones(3, 2))
  traces(1, tensor.ones(3, 2):t())
  traces(1, x:to("float64"))
  traces(1, tensor.ones(6))
  traces(1, x, 1)
  traces(1, x, 1.0)
  traces(1, x, 2)
  traces(1, x, "1")
  traces(1, x, "")
  traces(1, x, true)
  traces(1, x, false)
  traces(1, x, nil)
  traces(1)
  traces(1, nil)
  traces(1, x, x)
  traces(0, tensor.zeros(2, 3)[{ {}, {} }], 1)
  traces(1, x, tensor.ones(2, 3))
  traces(0, x, 1)
end

-- What overlaps must be copied first where the arguments share a storage, and only there.
function TestSignatures:test_arguments_that_alias()
  local function f(x, y)
    x:copy_(y:t())
    return x + y
  end
  local g, calls = counted(f)
  for _ = 1, 3 do
    agree(f, g, function() return {n = 2, tensor.randn(3, 3), tensor.randn(3, 3)} end)
    agree(f, g, function()
      local x = tensor.randn(3, 3)
      return {n = 2, x, x}
    end)
    agree(f, g, function()
      local x = tensor.randn(7, 3)
      return {n = 2, x[{ {2, 4}, {} }], x[{ {3, 5}, {} }]}
    end)
  end
  equals(calls[1], 3)
end

function TestSignatures:test_views_at_other_places_are_one_trace()
  local data = tensor.randn(100, 4)
  local function f(x)
    x[1]:add_(1)
    return x * 2, x[2], x:sum()
  end
  local g, calls = counted(f)
  for i = 1, 90, 7 do
    agree(f, g, function() return {n = 1, data:clone()[{ {i, i + 9}, {} }]} end)
  end
  equals(calls[1], 1)
end

-- A write to all of a small tensor is one to a part of a larger one.
function TestSignatures:test_whole_and_part()
  local function f(x)
    x:fill_(3)
    return x * 1
  end
  local g, calls = counted(f)
  for _ = 1, 2 do
    agree(f, g, function() return {n = 1, tensor.ones(4)} end)
    local whole = tensor.ones(3, 4)
    g(whole[2])
    equals(whole:totable(), {{1, 1, 1, 1}, {3, 3, 3, 3}, {1, 1, 1, 1}})
  end
  equals(calls[1], 1)
end

-- The function knows the tensor as w, whether or not it is also given it.
function TestSignatures:test_a_captured_tensor_as_argument()
  for _, first in ipairs {true, false} do
    local w = tensor{1, 2, 3}
    local g, calls = counted(function(x) return x * 10 + w end)
    local y = tensor{4, 5, 6}
    for round = 1, 3 do
      if (round == 1) == first then
        equals(g(w):totable(), {11, 22, 33})
      else
        equals(g(y):totable(), {41, 52, 63})
      end
    end
    equals(g(w[{}]):totable(), {11, 22, 33})
    equals(calls[1], 1)
  end
end

function TestSignatures:test_a_captured_tensor_as_argument_is_written()
  local w = tensor{1, 2, 3}
  local add = tensor.compile(function(x) w:add_(x) end)
  add(tensor{1, 1, 1})
  add(w)
  equals(w:totable(), {4, 6, 8})
  local m = tensor{{1, 2}, {3, 4}}
  local sentence =
    "compile: copy_: overlaps a tensor that is an argument and used in the function by itself too"
  local function f(x) m:copy_(x:t()) end
  raises(sentence, tensor.compile(f), m)
  local g = tensor.compile(f)
  g(tensor{{5, 6}, {7, 8}})
  raises(sentence, g, m)
  equals(m:totable(), {{5, 7}, {6, 8}})
end

function TestSignatures:test_many_traces()
  local g, calls = counted(function(x, n) return x * n end)
  local x = tensor{1, 2}
  for n = 1, 300 do equals(g(x, n):totable(), {n, 2 * n}) end
  equals(calls[1], 300)
  g(x, 300)
  equals(calls[1], 300)
  g(x, 1) -- forgotten since
  equals(calls[1], 301)
end

-- ---- random functions ----

TestRandomFunctions = {}

local unary = {"neg", "abs", "tanh", "sigmoid", "relu"}
local binary = {"add", "sub", "mul", "maximum", "minimum"}

-- A function of two tensors that the seed stands for; `captured` is what it uses from outside.
local function random_function(seed, captured)
  return function(x, y)
    math.randomseed(seed)
    local random = math.random
    local live = {x, y, captured[1], captured[2]}
    local function pick() return live[random(#live)] end
    local function operand()
      local kind = random(6)
      if kind == 1 then return random() end
      if kind == 2 then return pick()[random(#x)] end
      return pick()
    end
    for _ = 1, 25 do
      local kind, z = random(12)
      if kind <= 4 then
        z = tensor[binary[random(#binary)]](pick(), operand())
      elseif kind <= 6 then
        z = tensor[unary[random(#unary)]](pick())
      elseif kind == 7 then
        pick():add_(operand()):tanh_()
      elseif kind == 8 then
        pick()[{ {1, 2}, {} }]:mul_(random())
      elseif kind == 9 then
        z = pick():mm(pick():t()):mm(pick()):tanh()
      elseif kind == 10 then
        z = tensor.rand(#x, x.shape[2]) - pick():mean(random(2), true)
      elseif kind == 11 then
        pick():copy_(pick())
      else
        z = pick() * tensor{random()}
      end
      if z then live[#live + 1] = z end
    end
    return table.unpack(live, random(#live - 3))
  end
end

local function compare(seed)
  local rows, columns = 3, 4
  if seed % 3 == 0 then rows, columns = 150, 128 end -- large enough to be joined
  math.randomseed(seed)
  local captured = {tensor.randn(rows, columns), tensor.randn(rows, columns)}
  local values = {captured[1]:clone(), captured[2]:clone()}
  local f = random_function(seed, captured)
  local g = tensor.compile(f)
  local function run(h)
    tensor.manual_seed(seed)
    for i = 1, 2 do captured[i]:copy_(values[i]) end
    local read = {}
    for call = 1, 3 do
      local x, y = tensor.randn(rows, columns), tensor.randn(2 * rows, columns)
      if call == 3 then x = tensor.randn(rows + 1, columns)[{ {2, rows + 1}, {} }] end
      y = y[{ {call, rows + call - 1}, {} }]
      for _, z in ipairs {h(x, y)} do read[#read + 1] = z end
      read[#read + 1], read[#read + 2] = x, y
      captured[1]:add_(0.25)
      if call == 2 then collectgarbage() end
    end
    for i = 1, 2 do read[#read + 1] = captured[i]:clone() end
    return read
  end
  local expected, got = run(f), run(g)
  equals(#got, #expected)
  for i = 1, #got do
    lu.assertTrue(got[i] == expected[i], ("seed %d, value %d of %d"):format(seed, i, #got))
  end
end

function TestRandomFunctions:test_equal_eager_calls()
  local fusion, threads = tensor.fusion(), tensor.get_num_threads()
  for seed = 1, support.slow and 20 or 120 do
    tensor.fusion(seed % 2 == 0)
    tensor.set_num_threads(seed % 4 + 1)
    compare(seed)
  end
  tensor.fusion(fusion)
  tensor.set_num_threads(threads)
end

function TestRandomFunctions:test_between_changes_of_threads_and_fusion()
  local before = tensor.fusion()
  local function f(x) return ((x * x + 2) * x - 1):tanh():mm(x), x:sum() end
  local g, calls = counted(f)
  support.each_thread_count(function()
    for _, on in ipairs {true, false} do
      tensor.fusion(on)
      for _ = 1, 2 do agree(f, g, function() return {n = 1, tensor.randn(128, 128)} end) end
    end
  end)
  tensor.fusion(before)
  equals(calls[1], 1)
end

-- ---- calls in calls ----

TestNested = {}

function TestNested:test_inlined()
  local inner, inner_calls = counted(function(x) return x * 2, "inner" end)
  inner(tensor{0})
  local outer, outer_calls = counted(function(x)
    local y, text = inner(x)
    return inner(y) + 1, text
  end)
  for i = 1, 3 do
    local y, text = outer(tensor{i})
    equals({y:totable(), text}, {{4 * i + 1}, "inner"})
  end
  equals({inner_calls[1], outer_calls[1]}, {3, 1})
end

function TestNested:test_recursion()
  local g
  g = tensor.compile(function(x, n)
    if n == 0 then return x end
    return g(x * 2, n - 1) + 1
  end)
  for _ = 1, 2 do equals(g(tensor{1, 2}, 3):totable(), {11, 19}) end
  equals(g(tensor{1}, 2):totable(), {6})
end

function TestNested:test_compiled_of_compiled_and_of_a_callable()
  local callable = setmetatable({}, {__call = function(self, x) return x + 1 end})
  local g = tensor.compile(tensor.compile(callable))
  for i = 1, 3 do equals(g(tensor{i}):totable(), {i + 1}) end
end

function TestNested:test_in_and_around_coroutines()
  local g = tensor.compile(function(x)
    return coroutine.wrap(function()
      local y = x + 1
      coroutine.yield(y * 2)
    end)()
  end)
  for i = 1, 3 do
    equals(coroutine.wrap(function() return g(tensor{i}) end)():totable(), {2 * i + 2})
  end
end

-- ---- what cannot be repeated ----

TestRefused = {}

function TestRefused:test_arguments_and_results()
  raises("compile: wants a function, not 3", tensor.compile, 3)
  raises("compile: wants a function, not missing", tensor.compile)
  raises("compile: wants a function, not table", tensor.compile, {})
  raises("compile: 2 arguments are too many: at most 1", tensor.compile, print, 1)
  local g = tensor.compile(function(...) return ... end)
  for _, value in ipairs {{}, print, coroutine.create(print), io.stdout} do
    raises(("compile: argument 2 is a %s: a compiled function takes tensors, numbers, strings, " ..
      "booleans and nil"):format(type(value)), g, 1, value)
    raises(("compile: result 2 is a %s: a compiled function gives tensors, numbers, strings, " ..
      "booleans and nil"):format(type(value)), tensor.compile(function() return 1, value end))
  end
  local closed = tensor{1}
  do local _ <close> = closed end
  raises("compile: argument 1 is a tensor that has been closed", g, closed)
  raises("compile: result 1 is a tensor that has been closed",
    tensor.compile(function() return closed end))
  equals(g(tensor{1}):totable(), {1})
end

local READERS = {
  item = function(x) return x:item() end,
  totable = function(x) return x:totable() end,
  tostring = function(x) return tostring(x) end,
  wait = function(x) return x:wait() end,
  is_ready = function(x) return x:is_ready() end,
  equal = function(x) return x == x * 1 end,
  allclose = function(x) return x:allclose(x) end,
  ["<"] = function(x) return x < 1 end,
  ["<="] = function(x) return 1 <= x end,
  sync = function() sync() end,
}

for name, read in pairs(READERS) do
  TestRefused["test_" .. name] = function()
    local sentence = ("compile: %s: a function being traced has no values to read: return the " ..
      "tensor, read it outside"):format(name)
    local x = tensor{2}
    local g = tensor.compile(function(y)
      y:add_(1)
      read(y * 2)
    end)
    contains(raises(sentence, g, x), "test_compile.lua:")
    raises(sentence, g, x)
    raises(sentence, tensor.compile(function(y) pcall(read, y * 2) end), x) -- caught inside
    read(x)
    equals(x:totable(), {4})
  end
end

function TestRefused:test_print_and_benchmark()
  contains(select(2, pcall(tensor.compile(function(x) return "x = " .. x end), tensor{1})),
    "compile: tostring: ")
  contains(select(2, pcall(tensor.compile(function(x) benchmark(function() end) end), tensor{1})),
    "compile: sync: ")
end

function TestRefused:test_manual_seed()
  raises("compile: manual_seed: would not be repeated: call it outside the function",
    tensor.compile(function() tensor.manual_seed(1) end))
end

-- An argument kept from the traced call has no value afterwards, and says so.
function TestRefused:test_a_kept_argument()
  local kept, view
  local x = tensor{1, 2}
  local g = tensor.compile(function(y) kept, view = y, y[1] return y + 1 end)
  for _ = 1, 2 do equals(g(x):totable(), {2, 3}) end
  local sentence =
    "compile: this was the argument of a function while it was traced, and is none outside"
  raises(sentence, function() kept:totable() end)
  raises(sentence, function() return (view + 1):item() end)
  pcall(kept.fill_, kept, 1)
  raises(sentence, function() print(kept) end)
  raises(sentence, function() tensor.compile(function(y) return y + kept end)(x):wait() end)
  equals(x:totable(), {1, 2})
end

-- ---- errors ----

TestErrors = {}

function TestErrors:test_in_the_function()
  local fails = true
  local g = tensor.compile(function(x)
    local y = x + 1
    if fails then error({code = 7}) end
    return y
  end)
  local ok, message = pcall(g, tensor{1})
  equals({ok, message}, {false, {code = 7}})
  fails = false
  equals((tensor{1} + 1):item(), 2) -- not traced
  for _ = 1, 2 do equals(g(tensor{1}):item(), 2) end
end

function TestErrors:test_traceback()
  local function thrower(x) return x:mm(x) end
  local g = tensor.compile(function(x) return (thrower(x)) end)
  local ok, message = xpcall(g, debug.traceback, tensor{1})
  contains(message, "mm: wants a matrix and a matrix")
  contains(message, "'thrower'")
end

-- The stack of a coroutine that failed is never unwound.
function TestErrors:test_in_a_coroutine_that_stays()
  local g = tensor.compile(function(x)
    local y = x * 2
    if #x == 1 then error("one") end
    return y
  end)
  local first = coroutine.create(g)
  contains(select(2, coroutine.resume(first, tensor{1})), "one")
  equals((tensor{1} + 1):item(), 2)
  equals(g(tensor{1, 2}):totable(), {2, 4})
  local second = coroutine.create(g)
  coroutine.resume(second, tensor{1})
  local h = tensor.compile(function(x)
    coroutine.close(first)
    coroutine.close(second)
    return x + 1
  end)
  equals(h(tensor{1}):item(), 2)
  coroutine.resume(coroutine.create(g), tensor{1})
  collectgarbage()
  collectgarbage()
  equals((tensor{1} + 1):item(), 2)
end

function TestErrors:test_yield()
  local g = tensor.compile(function(x) coroutine.yield(x) end)
  local ok, message = coroutine.resume(coroutine.create(function() g(tensor{1}) end))
  lu.assertFalse(ok)
  contains(message, "attempt to yield across a C-call boundary")
  equals((tensor{1} + 1):item(), 2)
end

function TestErrors:test_late_ones_name_the_line()
  local script = [[
    local g = tensor.compile(function(x)
      local y = x:mm(x)
      return y + 1
    end)
    local x = tensor.ones(2, 2)
    g(x)
    local y = g(x)
    print(g(x) == g(x))
    print(pcall(function()
      y:wait()
    end))]]
  local status, out, err = support.run_script(script, {FAULT = "mm:2"})
  equals({status, out, err}, {0,
    "true\nfalse\tSCRIPT:10: mm: injected failure (queued at SCRIPT:2)\n", ""})
end

function TestErrors:test_out_of_memory()
  local script = [[
    local g = tensor.compile(function(x, n)
      local y = tensor.ones(n)
      return y + x
    end)
    local keep = {}
    local ok, message
    for i = 1, 30 do
      ok, message = pcall(g, tensor{1}, 1 << 20)
      if not ok then break end
      keep[i] = message
    end
    print(ok, message)
    keep = nil
    collectgarbage()
    for i = 1, 100 do
      local y = g(tensor{i}, 1 << 20)
      assert(y[1]:item() == i + 1)
    end]]
  local status, out, err = support.run_script(script, {MEMORY = "32M"})
  equals({status, err}, {0, ""})
  lu.assertStrMatches(out, "false\tSCRIPT:%d+: %w+: out of memory: .*\n")
end

-- ---- lifetimes ----

TestLifetimes = {}

function TestLifetimes:test_collected()
  for i = 1, support.slow and 30 or 300 do
    local w = tensor.ones(50, 50)
    local g = tensor.compile(function(x, n) return x:mm(w) * n + tensor{1}, "text" .. n end)
    for n = 1, 3 do
      g(tensor.ones(2, 50), n)
      lu.assertEquals(g(tensor.ones(2, 50), n):sum():item(), 100 * (50 * n + 1))
    end
    if i % 10 == 0 then collectgarbage() end
  end
end

-- What a trace needs stays, also when nothing else has it.
function TestLifetimes:test_captured_tensors_stay()
  local w = tensor.full({2, 2}, 3)
  local g = tensor.compile(function(x) return x * w end)
  g(tensor.ones(2, 2))
  do local _ <close> = w end
  w = nil
  collectgarbage()
  for _ = 1, 50 do tensor.zeros(2, 2):add_(1) end
  equals(g(tensor.ones(2, 2)):totable(), {{3, 3}, {3, 3}})
end

-- Temporaries go with their last use: a long chain runs in a small budget.
function TestLifetimes:test_temporaries_are_dropped()
  local script = [[
    local g = tensor.compile(function(x)
      for i = 1, 60 do
        local y <close> = x
        x = x + 1
      end
      return x:sum()
    end)
    for i = 1, 20 do assert(g(tensor.zeros(1 << 20)):item() == 60 * (1 << 20)) end]]
  for _, fusion in ipairs {"0", "1"} do
    local status, out, err = support.run_script("tensor.fusion(" ..
      (fusion == "1" and "true" or "false") .. ")\n" .. script, {MEMORY = "64M"})
    equals({status, out, err}, {0, "", ""})
  end
end

function TestLifetimes:test_released_inside()
  local g = tensor.compile(function(x)
    local total = tensor.zeros(2)
    for i = 1, 20 do
      local y <close> = x * i
      total:add_(y)
      if i % 5 == 0 then collectgarbage() end
    end
    return total
  end)
  for i = 1, 3 do equals(g(tensor{i, 1}):totable(), {210 * i, 210}) end
end

function TestLifetimes:test_finalizers_call_it()
  local g = tensor.compile(function(x) return x + 1 end)
  local total, mt = 0, {}
  mt.__gc = function() total = total + g(tensor{1}):item() end
  for i = 1, 200 do
    setmetatable({}, mt)
    equals(g(tensor{i}):item(), i + 1)
    if i % 20 == 0 then collectgarbage() end
  end
  lu.assertTrue(total > 0)
end

os.exit(lu.LuaUnit.run())
