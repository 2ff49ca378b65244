-- What waits and what does not among the functions of indices and masks, and how values that are
-- wrong fail: precisely, and late.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local picking = require "picking"
local equals, raises, contains = lu.assertEquals, support.assert_raises, lu.assertStrContains
local int, bool = picking.int, picking.bool

-- ---- what waits ----

TestWaiting = {}

-- A function that reads a value cannot be traced; one that does not can be, and called again.
function TestWaiting:test_what_does_not_wait()
  local functions = {
    function(x, m) x[m] = 1 return x end,
    function(x, m) x[m] = tensor{4, 5} return x end,
    function(x, m) x[{m}] = x[int{1}] return x end,
    function(x, m) return x:masked_fill(m, 2) end,
    function(x, m) return x:masked_fill_(m, 2) end,
    function(x, m) return x:masked_scatter_(m, tensor{7, 8, 9}) end,
    function(x, _, i) return x[i] end,
    function(x, _, i) x[i] = tensor{5, 6} return x end,
    function(x, _, i) x[i] = 3 return x end,
    function(x, _, i) return x:index_put_(i, 3, true) end,
    function(x, _, i) return x:gather(1, i) end,
    function(x, _, i) return x:scatter_add_(1, i, tensor{5, 6}) end,
    function(x, _, i) return x:index_add(1, i, tensor{5, 6}) end,
    function(x, _, i) return x:take(i):put_(i:clone():fill_(1), tensor{1, 2}) end,
  }
  for n, f in ipairs(functions) do
    local compiled = tensor.compile(f)
    for _, case in ipairs {
      {{1, 2, 3}, {true, false, true}, {1, 3}}, {{4, 5, 6}, {false, true, true}, {-1, -1}},
    } do
      local function arguments() return tensor(case[1]), bool(case[2]), int(case[3]) end
      equals(compiled(arguments()):totable(), f(arguments()):totable(), "function " .. n)
    end
  end
end

function TestWaiting:test_what_waits()
  local text = "compile: %s: a function being traced has no values to read: return the tensor, " ..
               "read it outside"
  local x, m = tensor{1, 2}, bool{true, false}
  for name, f in pairs {
    index = function() return x[m] end, nonzero = function() return x:nonzero() end,
    masked_select = function() return x:masked_select(m) end,
    argwhere = function() return x:argwhere() end,
  } do
    raises(text:format(name), tensor.compile(f))
  end
end

-- An argument of a compiled function that is written in parts keeps the others.
function TestWaiting:test_compiled_scatter_writes_parts()
  local f = tensor.compile(function(x, i) x[i] = tensor{7, 8} end)
  for _ = 1, 2 do
    local x = tensor{1, 2} -- as many elements as are written, but one place
    f(x, int{2, 2})
    equals(x:totable(), {1, 8})
  end
  local g = tensor.compile(function(x, i, v) x[i] = v end)
  local x = int{2, 1}
  g(int{1, 2}, x, x)
  raises("compile: index: overlaps a tensor that is an argument and used in the function by " ..
         "itself too", function()
    local y = int{2, 1}
    tensor.compile(function(a) a[y] = a * 2 end)(y)
  end)
end

-- ---- indices out of range ----

TestRange = {}

local OUT = " is out of range for "

-- In a function, since a synchronous run raises at the call.
local function message_of(f, ...)
  local ok, message = pcall(f, ...)
  equals(ok, false)
  return message:match "^[^:]+:%d+: (.-) %(queued at [^:]+:%d+%)$" or message
end

function TestRange:test_messages()
  local x = tensor.zeros(2, 3)
  local cases = {
    {function() return x[int{1, 7}] end, "index: index 7" .. OUT .. "dimension 1"},
    {function() return x[{{}, int{-4}}] end, "index: index -4" .. OUT .. "dimension 2"},
    {function() return x[{1, int{0}}] end, "index: index 0" .. OUT .. "dimension 2"},
    {function() return x[{int{1}, int{math.mininteger}}] end,
     "index: index -9223372036854775808" .. OUT .. "dimension 2"},
    {function() return x:index_select(1, int{math.maxinteger}) end,
     "index_select: index 9223372036854775807" .. OUT .. "dimension 1"},
    {function() return x:gather(2, int{{4}}) end, "gather: index 4" .. OUT .. "dimension 2"},
    {function() return x:clone():scatter_(1, int{{3}}, 1) end,
     "scatter_: index 3" .. OUT .. "dimension 1"},
    {function() return x:scatter_add(1, int{{-3}}, 1) end,
     "scatter_add: index -3" .. OUT .. "dimension 1"},
    {function() return x:index_fill(2, tensor({5}, {dtype = "uint8"}), 1) end,
     "index_fill: index 5" .. OUT .. "dimension 2"},
    {function() return x:take(int{7}) end, "take: index 7" .. OUT .. "the 6 elements"},
    {function() return x:put(int{-7}, tensor{1}) end, "put: index -7" .. OUT .. "the 6 elements"},
    {function() return x:take_along_dim(int{{9}}, 1) end,
     "take_along_dim: index 9" .. OUT .. "dimension 1"},
    {function() local y = x:clone() y[int{3}] = 1 return y end,
     "index: index 3" .. OUT .. "dimension 1"},
    {function() return x[{{1, 0}}][{{}, int{1, 5}}] + 1 end}, -- nothing is looked up
    {function() return tensor.zeros(0, 3)[int{1}] end,
     "index: index 1" .. OUT .. "dimension 1", "0x3"},
  }
  for i, case in ipairs(cases) do
    local function read() return case[1]():totable() end
    if case[2] then
      equals(message_of(read), case[2] .. " of a tensor of size " .. (case[3] or "2x3"), i)
    else
      read()
    end
  end
  equals(x:totable(), {{0, 0, 0}, {0, 0, 0}})
end

function TestRange:test_numbers_of_values()
  local x, mask = tensor{1, 2, 3}, bool{true, false, true}
  local function place(values)
    return function()
      local y = x:clone()
      y[mask] = tensor(values)
      return y:totable()
    end
  end
  equals(place{7, 8}(), {7, 2, 8})
  equals(message_of(place{7, 8, 9}), "index: 3 values for a mask with 2 true elements")
  equals(message_of(place{}), "index: 0 values for a mask with 2 true elements")
  equals(message_of(function() return x:masked_scatter(mask, tensor{1}):totable() end),
         "masked_scatter: 1 values for a mask with 2 true elements")
end

-- The failure stays with what was computed from it, and with what was to be written; nothing else
-- is touched.  Programs of their own, since a failure nobody asks for is told at the end.
function TestRange:test_stays()
  local status, out, err = support.run_script([[
    local x = tensor{1, 2, 3}
    local i = tensor({4}, {dtype = "int64"})
    local y = x[i]
    local z, other = y + 1, x * 2
    x[i] = 5
    local w = x + 1
    print(other:totable()[3])
    for _, t in ipairs {z, y, w, x, z} do print(pcall(t.item, t:sum())) end
    x:fill_(3)
    print(x:totable()[1])
    print(pcall(sync))
  ]], {SYNC = "0"})
  equals({status, err}, {0, ""})
  local text = "false\tSCRIPT:8: index: index 4 is out of range for dimension 1 of a tensor of " ..
               "size 3 (queued at SCRIPT:%d)\n"
  equals(out, "6.0\n" .. text:format(3):rep(2) .. text:format(5):rep(2) .. text:format(3) ..
              "3.0\ntrue\n")
end

function TestRange:test_told_at_the_end()
  local status, _, err = support.run_script([[
    local x = tensor.zeros(2)
    x:index_fill_(1, tensor({3}, {dtype = "int64"}), 1)
  ]])
  equals(status, 1)
  contains(err, "index_fill_: index 3 is out of range for dimension 1 of a tensor of size 2")
end

-- A mask whose values do not exist has no number of true elements either.
function TestRange:test_mask_that_failed()
  equals(message_of(function()
    local mask = tensor{1, 2}[int{3}]:gt(0)
    return tensor{1}[mask]
  end), "index: index 3 is out of range for dimension 1 of a tensor of size 2")
end

-- Failures have the name of what was called.
function TestRange:test_injected()
  for name, use in pairs {
    index = "y = x[i]", gather = "y = x:gather(1, i)", scatter_add_ = "y:scatter_add_(1, i, 1)",
    masked_scatter_ = "y:masked_scatter_(m, x)", masked_fill_ = "y:masked_fill_(m, 2)",
  } do
    local _, out = support.run_script(([[
      local x, y = tensor{1, 2}, tensor{3, 4}
      local i, m = tensor({1}, {dtype = "int64"}), tensor{1, 0}:gt(0)
      print(pcall(function()
        %s
        y:wait()
      end))
      y:fill_(1):wait()
    ]]):format(use), {FAULT = name .. ":1"})
    lu.assertStrMatches(out, "false\tSCRIPT:%d: " .. name ..
                             ": injected failure %(queued at SCRIPT:4%)\n")
  end
end

-- A finalizer that closes operands while a call makes its result.
function TestRange:test_hostile_finalizers()
  local use = {
    function(x, i) return x[i] end, function(x, i) x[i] = x end,
    function(x, _, m) return x[m] end, function(x, _, m) x[m] = tensor{1, 2} end,
    function(x, _, m) return x:masked_fill(m, 1) end,
    function(x, i) return x:scatter_add(1, i, x) end, function(x, i) return x:put_(i, x, true) end,
  }
  for n, f in ipairs(use) do
    for late = 0, support.slow and 3 or 20 do
      local x, i, m = tensor{1, 2}, int{2, 1}, bool{true, false}
      local victims = {x, i, m}
      setmetatable({}, {__gc = function()
        for _, victim in ipairs(victims) do local _ <close> = victim end
      end})
      for _ = 1, late do tensor(1):neg() end
      collectgarbage "step"
      local ok, message = pcall(function()
        local y = f(x, i, m)
        collectgarbage()
        return y and y:sum():item()
      end)
      if not ok and not message:find "closed" and not message:find "1 true elements" then
        error(("case %d: %s"):format(n, message))
      end
    end
  end
  sync()
end

-- A finalizer that changes a mask after its true elements have been counted.
function TestRange:test_mask_that_changes()
  if not support.under_gc then collectgarbage("incremental", 1, 1000, 8) end
  for round = 1, support.slow and 60 or 400 do
    local x, mask = tensor.ones(2000), tensor.rand(2000):gt(0.5)
    setmetatable({}, {__gc = function() mask:fill_(true) end})
    for _ = 1, round % 50 do local _ = {} end
    local ok, y = pcall(function() return x[mask]:sum():item() end)
    if ok then
      lu.assertTrue(y <= 2000)
    else
      contains(y, "index: a finalizer has changed the mask")
    end
  end
  if not support.under_gc then collectgarbage "generational" end
end

os.exit(lu.LuaUnit.run())
