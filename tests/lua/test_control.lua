-- Threads and memory.
package.path = arg[0]:gsub("[^/]*$", "") .. "?.lua;" .. package.path
require "support"
local lu = require "luaunit"

local MIB = 1 << 20

TestMemory = {}

function TestMemory:setUp()
  collectgarbage()
  collectgarbage()
  sync()
end

function TestMemory:test_live_is_what_handles_hold()
  local before = tensor.memory().live
  local x = tensor.ones(1024, 1024)
  local view = x[1]
  lu.assertEquals(tensor.memory().live - before, 4 * MIB)
  x = nil
  collectgarbage()
  lu.assertEquals(tensor.memory().live - before, 4 * MIB) -- the view holds it
  view = nil
  collectgarbage()
  collectgarbage()
  lu.assertEquals(tensor.memory().live, before)
end

function TestMemory:test_buffers_are_pooled_and_given_back()
  tensor.empty_cache()
  do
    local x <close> = tensor.ones(1024, 1024)
    x:wait()
    lu.assertTrue(tensor.memory().used >= 4 * MIB)
  end
  sync()
  local memory = tensor.memory()
  lu.assertTrue(memory.pooled >= 4 * MIB)
  lu.assertTrue(memory.peak >= memory.used + memory.pooled)
  tensor.empty_cache()
  lu.assertEquals(tensor.memory().pooled, 0)
end

function TestMemory:test_virtual_values_take_none()
  lu.skipIf(os.getenv("TENSORLUA_SYNC") == "1" or not tensor.fusion(), "nothing is virtual")
  local threads = tensor.get_num_threads()
  tensor.set_num_threads(1)
  local x = tensor.ones(1024, 1024)
  sync()
  local used = tensor.memory().used
  -- While the one lane is busy with this, the two operations below gather in the queue.
  do local busy <close> = x:mm(x) end
  local double = x * 2
  local triple = double + 1
  sync()
  local memory = tensor.memory()
  lu.assertEquals(memory.virtual, 4 * MIB)
  lu.assertEquals(memory.used - used, 4 * MIB)
  double:wait()
  memory = tensor.memory()
  lu.assertEquals(memory.virtual, 0)
  lu.assertEquals(memory.used - used, 8 * MIB)
  lu.assertTrue(triple == x * 2 + 1)
  tensor.set_num_threads(threads)
end

function TestMemory:test_arguments()
  lu.assertErrorMsgContains("memory: 1 arguments are too many", tensor.memory, 1)
  lu.assertErrorMsgContains("empty_cache: 1 arguments are too many", tensor.empty_cache, 1)
  lu.assertTrue(tensor.memory().budget > 0)
end

TestThreads = {}

function TestThreads:test_the_number_can_be_changed_with_work_in_the_queue()
  local before = tensor.get_num_threads()
  local x = tensor.ones(300, 300)
  for threads = 1, 4 do
    for _ = 1, 20 do x = x:mm(x) * (1 / 300) end
    tensor.set_num_threads(threads)
    lu.assertEquals(tensor.get_num_threads(), threads)
  end
  lu.assertTrue(tensor.allclose(x, tensor.ones(300, 300), 1e-3))
  tensor.set_num_threads(before)
end

function TestThreads:test_arguments()
  for _, wrong in ipairs {0, -1, 1025, 1.5, "2", false} do
    lu.assertErrorMsgContains("set_num_threads: ", tensor.set_num_threads, wrong)
  end
end

os.exit(lu.LuaUnit.run())
