-- Memory stays bounded in plain loops, with no collectgarbage() in them: the program's peak of
-- resident memory after many temporaries, large and small.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals = lu.assertEquals

local LIMIT = 200 * 1024 -- KiB

-- The peak in KiB of a program that runs this text; skips where the system does not tell it.
local function peak(text, env)
  lu.skipIf(not io.open "/proc/self/status", "needs /proc")
  local status, out, err = support.run_script(text .. [[

    sync()
    print("peak", (io.open "/proc/self/status":read "a"):match "VmHWM:%s*(%d+)")]], env)
  equals({status, err}, {0, ""})
  return tonumber(out:match "peak\t(%d+)"), out
end

local function assert_bounded(text, env)
  local kib = peak(text, env)
  lu.assertTrue(support.sanitized or kib < LIMIT, ("%.0f MiB at the peak"):format(kib / 1024))
end

-- Loops that ask for this many turns of a plain build ask for fewer under a sanitizer.
local function turns(count) return support.slow and count // 100 or count end

TestPeak = {}

function TestPeak:test_large_temporaries()
  assert_bounded(([[
    local x = tensor.ones(1024, 1024)
    for i = 1, %d do
      local y = x + i
    end]]):format(turns(10000)))
end

function TestPeak:test_large_temporaries_in_incremental_mode()
  assert_bounded(([[
    collectgarbage "incremental"
    local x = tensor.ones(1024, 1024)
    for i = 1, %d do
      local y = x + i
    end]]):format(turns(1000)))
end

function TestPeak:test_small_temporaries()
  assert_bounded(([[
    local x = tensor.ones(1, 2)
    for i = 1, %d do
      local y = x + 1
    end]]):format(turns(1000000)))
end

function TestPeak:test_in_synchronous_mode()
  assert_bounded(([[
    local x, z = tensor.ones(1024, 1024), tensor.ones(1, 2)
    for i = 1, %d do
      local y = x + i
      for j = 1, 100 do local w = z + 1 end
    end]]):format(turns(1000)), {SYNC = "1"})
end

-- Chains keep one value alive and feed the next: nothing that is dead stays behind it.
function TestPeak:test_chains()
  local text = ([[
    local x = tensor.zeros(512, 512)
    for i = 1, %d do x = x * 0.5 + 1 end
    print(x:max():item())]]):format(turns(5000))
  local kib, out = peak(text)
  equals(out:match "^[^\n]*", "2.0")
  lu.assertTrue(support.sanitized or kib < LIMIT, kib)
end

-- What survives two young collections is old: only a full collection frees it.
function TestPeak:test_values_that_live_for_a_while()
  assert_bounded(([[
    local ring = {}
    for i = 1, %d do ring[i %% 8] = tensor.zeros(256, 1024) + i end]]):format(turns(10000)))
end

function TestPeak:test_other_ways_to_make_large_tensors()
  assert_bounded(([[
    local x = tensor.ones(512, 1024)
    for i = 1, %d do
      local a, b, c = tensor.randn(512, 512), x:t():clone(), x:to("float64")
      local d = x[{{1, 256}}]:reshape(1024, 256):t():reshape(-1)
      local e = x:mm(x:t())
    end]]):format(turns(400)))
end

function TestPeak:test_views_and_errors()
  assert_bounded(([[
    local x = tensor.ones(64, 64)
    for i = 1, %d do
      local v = x[1][{{2, 60}}]:t()
      pcall(x.mm, x, v)
      pcall(tensor.zeros, -1)
    end]]):format(turns(300000)))
end

function TestPeak:test_coroutines()
  assert_bounded(([[
    for i = 1, %d do
      local co = coroutine.wrap(function()
        local x = tensor.zeros(256, 256)
        coroutine.yield(x + 1)
      end)
      co()
    end]]):format(turns(10000)))
end

TestHandles = {}

-- The values are right whatever the collector does between making and using them.
function TestHandles:test_values_under_collection()
  local kept = {}
  for i = 1, support.slow and 300 or 3000 do
    local x = tensor.full({3, 3}, i)
    local y = (x + tensor{1, 2, 3}):t()[{2, {1, 2}}]
    if i % 10 == 0 then kept[#kept + 1] = {i, y} end
    if i % 97 == 0 then collectgarbage() end
  end
  for _, pair in ipairs(kept) do equals(pair[2]:totable(), {pair[1] + 2, pair[1] + 2}) end
end

function TestHandles:test_close()
  local x = tensor.ones(3)
  local y
  do
    local z <close> = x + 1
    y = z * 2
  end
  equals(y:totable(), {4, 4, 4})
  local closed = x + 1
  do local _ <close> = closed end
  do local _ <close> = closed end -- twice is no mistake
  lu.assertErrorMsgContains("add: operand 1 is a tensor that has been closed",
                            function() return closed + 1 end)
  lu.assertErrorMsgContains("mm: argument 2 is a tensor that has been closed",
                            function() return tensor.ones(3, 3):mm(closed) end)
end

function TestHandles:test_close_frees_at_once()
  local status, out, err = support.run_script([[
    collectgarbage "stop"
    for i = 1, 100 do
      local x <close> = tensor.zeros(3 << 20)
    end
    print "done"]], {MEMORY = "16M"})
  equals({status, out, err}, {0, "done\n", ""})
end

function TestHandles:test_finalizers_may_use_tensors()
  local sum = tensor.zeros(1)
  for i = 1, 100 do
    setmetatable({}, {__gc = function() sum:add_(tensor{i}) end})
  end
  collectgarbage()
  collectgarbage()
  equals(sum:item(), 5050)
end

function TestHandles:test_the_end_of_a_state_with_tensors_everywhere()
  local status, out, err = support.run_script [[
    global = tensor.ones(1000)
    local closing <close> = tensor.ones(10)
    setmetatable({}, {__gc = function() print((tensor.ones(2) + 1):sum():item()) end})
    local co = coroutine.create(function()
      local held <close> = tensor.ones(5)
      coroutine.yield()
    end)
    coroutine.resume(co)
    for i = 1, 1000 do global = global + 1 end]]
  equals({status, err}, {0, ""})
  equals(out, "4.0\n")
end

os.exit(lu.LuaUnit.run())
