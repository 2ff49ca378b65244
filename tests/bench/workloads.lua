-- The workloads of `make bench`, one row each: the name that peers and limits share, a title, the
-- unit of its figure, how many times what is timed does it, what its limit is, and a function that
-- prepares tensors and returns what is timed.  The timing includes the queue's draining, unless the
-- row is `undrained`.
local rows = {}

local function workload(name, title, unit, make, options)
  local row = {name = name, title = title, unit = unit, make = make, per = 1}
  for key, value in pairs(options or {}) do row[key] = value end
  rows[#rows + 1] = row
end

local function times(count, f)
  return function()
    for _ = 1, count do f() end
  end
end

-- ---- matrix products ----------------------------------------------------------------------------

local warmup = times(10, function()
  local a = tensor.randn(1000, 1000)
  local b = a:mm(a)
end)

workload("warmup.enqueue", "warm-up, only enqueued", "ms", function() return warmup end,
  {undrained = true, limit = "the warm-up executed"})
workload("warmup", "warm-up, with sync()", "ms", function() return warmup end,
  {limit = "ten bare products, all cores"})

for _, case in ipairs {{64, 1000}, {128, 300}, {256, 50}, {512, 5}, {1024, 1}, {2048, 1}} do
  local size, per = case[1], case[2]
  local title, unit = ("product of %dx%d"):format(size, size), size < 512 and "us" or "ms"
  workload("mm." .. size, title, unit, function()
    local a, b = tensor.randn(size, size), tensor.randn(size, size)
    return times(per, function() a:mm(b):wait() end)
  end, {per = per, limit = "bare product, all cores"})
end

workload("products64", "64 products of 200x200", "ms", function()
  local a, b = tensor.randn(200, 200), tensor.randn(200, 200)
  return times(64, function() return a:mm(b) end)
end, {limit = "loop over cblas_sgemm, all cores"})

for _, batch in ipairs {1, 256} do
  local per = batch == 1 and 200 or 5
  workload("mlp." .. batch, "MLP 512-256-128-2, batch " .. batch, "us", function()
    local x = tensor.randn(batch, 512)
    local w1, b1 = tensor.randn(512, 256), tensor.zeros(256)
    local w2, b2 = tensor.randn(256, 128), tensor.zeros(128)
    local w3, b3 = tensor.randn(128, 2), tensor.zeros(2)
    return times(per, function()
      local h = (x:mm(w1) + b1):relu()
      h = (h:mm(w2) + b2):relu()
      local y = (h:mm(w3) + b3):wait()
    end)
  end, {per = per, limit = "its bare products"})
end

-- ---- large arrays -------------------------------------------------------------------------------

local LARGE, WARM = 10000000, 1000000 -- beyond the caches, and within them
local ROWS, COLUMNS = 4096, 1024

-- A row whose function of one or two arrays is run once a timing.
local function array(name, title, shape, f, limit)
  workload(name, title, "ms", function()
    local x, y = tensor.randn(table.unpack(shape)), tensor.randn(table.unpack(shape))
    return function() return f(x, y) end
  end, {limit = limit})
end

array("xy2", "x*y + 2, 10^7", {LARGE}, function(x, y) return x * y + 2 end, "one C loop")
array("chain", "eight-step chain, 10^7", {LARGE},
  function(x, y) return ((((x * y + 2) * x - 1) * y + x) * 0.5 - y) end, "one C loop")
array("exp", "exp, 10^6", {WARM}, function(x) return x:exp() end, "one C loop")
array("tanh", "tanh, 10^6", {WARM}, function(x) return x:tanh() end, "one C loop")
array("gelu", "GELU written out, 10^6", {WARM}, function(x)
  return 0.5 * x * (1 + (0.7978845608 * (x + 0.044715 * x * x * x)):tanh())
end, "one C loop")
array("softmax", "softmax of rows, 4096x1024", {ROWS, COLUMNS}, function(x)
  local e = (x - x:amax(2, true)):exp()
  return e / e:sum(2, true)
end, "one C loop")
array("sum.rows", "sums of rows, 4096x1024", {ROWS, COLUMNS}, function(x) return x:sum(2) end,
  "one C loop")
array("sum.columns", "sums of columns, 4096x1024", {ROWS, COLUMNS},
  function(x) return x:sum(1) end, "one C loop over rows")
array("transpose", "transposed copy, 4096x1024", {ROWS, COLUMNS},
  function(x) return x:t():clone() end, "plain copy")
array("layout.transposed", "x + y transposed, 4096x1024", {ROWS, COLUMNS},
  function(x, y) return x + y:reshape(COLUMNS, ROWS):t() end, "one C loop, contiguous")
array("layout.stepped", "x + y, every other column", {ROWS, 2 * COLUMNS},
  function(x, y)
    local even = {{}, {1, 2 * COLUMNS - 1, 2}}
    return x[even] + y[even]
  end, "one C loop, contiguous")
array("layout.row", "x + row, 4096x1024", {ROWS, COLUMNS}, function(x, y) return x + y[1] end,
  "one C loop, contiguous")
array("randn", "randn(1000, 1000)", {1}, function() return tensor.randn(1000, 1000) end)

-- ---- small operations ---------------------------------------------------------------------------

workload("small", "x + 1 on 1x2, executed", "ns", function()
  local x = tensor.ones(1, 2)
  return times(200000, function() return x + 1 end)
end, {per = 200000})
workload("read", "blocked read, (x + 1):item()", "us", function()
  local x = tensor.ones(1)
  return times(5000, function() return (x + 1):item() end)
end, {per = 5000})
workload("loop.sync", "x + 1, 10,000 times, waiting", "ms", function()
  local x = tensor.ones(1, 2)
  return times(10000, function() local y = (x + 1):wait() end)
end)
workload("loop.async", "x + 1, 10,000 times, no waiting", "ms", function()
  local x = tensor.ones(1, 2)
  return times(10000, function() local y = x + 1 end)
end)

-- ---- how cost grows with size -------------------------------------------------------------------

local costs = {
  {name = "add", title = "x + 1", run = function(x) return x + 1 end},
  {name = "xy2", title = "x*y + 2", run = function(x, y) return x * y + 2 end},
  {name = "exp", title = "exp", run = function(x) return x:exp() end},
  {name = "sum", title = "sum", run = function(x) return x:sum() end},
  {name = "randn", title = "randn", run = function(x) return tensor.randn(#x) end},
}
local growth = {costs = costs, sizes = {}, rows = {}}

-- The largest come last: the system is busy for a while with the memory that they gave back.
for exponent = 0, 8 do
  local size = math.tointeger(10 ^ exponent)
  growth.sizes[#growth.sizes + 1] = size
  for _, cost in ipairs(costs) do
    local row = {name = ("grow.%s.%d"):format(cost.name, size), per = math.max(1, 10000 // size)}
    function row.make()
      local x, y = tensor.ones(size), tensor.ones(size)
      return times(row.per, function() return cost.run(x, y) end)
    end
    growth.rows[#growth.rows + 1] = row
  end
end

return {rows = rows, growth = growth}
