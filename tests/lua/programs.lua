-- Random programs over tensors of all dtypes.  The seed and the options alone say what a program
-- does: never the values, nor when they are ready.  For the suites that run one program in several
-- ways and ask for the same bits.

local M = {}

local DTYPES = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8",
                "uint8", "bool"}
local CATEGORY = {bool = 0, int64 = 1, int32 = 1, int16 = 1, int8 = 1, uint8 = 1}

-- Around TL_FUSE_ELEMENTS = 16384, from which commands are joined, and small ones.
local SHAPES = {
  {128, 128}, {129, 127}, {127, 129}, {150, 128}, {2, 64, 130}, {16383}, {16384}, {16385}, {33000},
  {4, 2, 2, 2, 2, 2, 2, 65}, {70, 300}, {16384, 1}, {1, 20000}, {7, 5}, {3}, {}, {0, 4},
  {2, 1, 3, 2, 1, 2, 2, 2}, {1030},
}

local UNARY = {
  "neg", "abs", "sign", "square", "relu", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log",
  "log1p", "sin", "cos", "tanh", "atan", "erf", "sigmoid", "silu", "floor", "ceil", "round",
  "trunc", "frac", "isnan", "isinf", "isfinite", "logical_not", "bitwise_not", "exp2", "log2",
  "log10", "tan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "lgamma",
}
local BINARY = {
  "add", "sub", "mul", "div", "maximum", "minimum", "atan2", "hypot", "eq", "ne", "lt", "le", "gt",
  "ge", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
  "bitwise_left_shift", "bitwise_right_shift", "copysign",
}
local SEVERAL = {"leaky_relu", "elu", "gelu", "softplus", "nan_to_num", "deg2rad"} -- steps
-- They fail for some integers.
local FAILING = {"floor_divide", "remainder", "fmod", "pow"}
local TESTS = {"eq", "ne", "lt", "le", "gt", "ge"}
local REDUCTIONS = {"sum", "prod", "mean", "amax", "amin", "any", "all", "count_nonzero"}

local NAN, INF = 0 / 0, math.huge

M.FAILING = 4 -- every how many-th program has commands that fail

-- ---- what a program is made of ----

local Program = {}
Program.__index = Program

function Program:one_of(list) return list[self.random(#list)] end

function Program:chance(n) return self.random(n) == 1 end

function Program:fresh(shape, dtype)
  shape, dtype = shape or self.shape, dtype or self:one_of(DTYPES)
  local x = tensor.randn(shape)
  if dtype == "bool" then return x:gt(0) end
  return (x * (CATEGORY[dtype] and 5 or 2)):to(dtype)
end

function Program:pick() return self.live[self.random(#self.live)] end

-- One more value of the pool.
function Program:keep(x)
  local live = self.live
  if type(x) ~= "userdata" then return end
  if #live < 12 then live[#live + 1] = x else live[self.random(#live)] = x end
end

function Program:number()
  return self:one_of {0, 1, -1, 2, 3, 0.5, -0.0, 1.5, -2.25, 7, 1e-3, 100, true, NAN, INF, -INF}
end

-- A part of a tensor, as a view.
function Program:view(x)
  local shape, kind = x.shape, self.random(7)
  local d = #shape > 0 and self.random(#shape) or 1
  local size = shape[d] or 0
  local first, last = self.random(math.max(size, 1)), self.random(math.max(size, 1))
  if first > last then first, last = last, first end
  local step = self.random(3)
  if #shape == 0 or x:numel() == 0 then return x end
  if kind == 1 then return x:transpose(d, #shape) end
  if kind == 2 then return x:select(d, first) end
  if kind == 3 then
    local key = {}
    for i = 1, #shape do key[i] = i == d and {first, last, step} or {} end
    return x[key]
  end
  if kind == 4 then return x:reshape(-1) end
  if kind == 5 then return x:narrow(d, first, 1):expand(shape) end
  if kind == 6 and #shape < 8 then return x:unsqueeze(d) end
  return x:flip(d)
end

-- Something that goes with a tensor in an operator: of its size or broadcast to it, or a number.
function Program:operand(x)
  local kind, shape = self.random(12), x.shape
  if kind <= 2 then return self:number() end
  if kind == 3 then return self:fresh({}, self:one_of(DTYPES)) end
  if kind == 4 and #shape > 0 then return self:fresh({shape[#shape]}) end
  if kind == 5 and #shape > 1 then return self:fresh {shape[#shape - 1], 1} end
  if kind == 6 then return x end
  if kind == 7 and #shape == 2 and shape[1] == shape[2] then return x:t() end
  local other = self:pick()
  if other:numel() == x:numel() then return other:reshape(shape) end
  return self:fresh(shape)
end

function Program:mask(x)
  if self:chance(4) then return self:fresh(x.shape, "bool") end
  local other = self:operand(x)
  return tensor[self:one_of(TESTS)](x, type(other) == "userdata" and other or self.random(3))
end

-- Integers from 1 to n, or out of range now and then.
function Program:indices(n, count)
  local x = (tensor.rand(count) * n):ceil():to(self:one_of {"int64", "int32"})
  if self.failing and self:chance(4) then x = x * 2 end
  return x:clamp(self.failing and -3 * n or 1, self.failing and 3 * n or n)
end

-- Integers that neither divide by 0 nor are negative, unless the program is to fail.
function Program:harmless(y, name)
  if type(y) ~= "userdata" then
    if y == true or y ~= y or math.abs(y) == INF or y <= 0 then return 2 end
    return y
  end
  if self.failing and self:chance(3) then return y end
  if name == "pow" then return y:abs():minimum(3):maximum(0) end
  return y:abs():maximum(1):minimum(9)
end

-- ---- statements ----

local statements = {}

function statements:binary()
  local x = self:pick()
  local name = self:one_of(BINARY)
  local y = self:operand(x)
  if type(y) ~= "userdata" and self:chance(2) then return tensor[name](y, x) end
  return tensor[name](x, y)
end

function statements:unary() return tensor[self:one_of(UNARY)](self:pick()) end

function statements:several()
  local x, name = self:pick(), self:one_of(SEVERAL)
  if self:chance(3) then x[name .. "_"](x) else return tensor[name](x) end
end

function statements:failing_binary()
  local x, name = self:pick(), self:one_of(FAILING)
  return tensor[name](x, self:harmless(self:operand(x), name))
end

function statements:chain()
  local x = self:pick()
  local y = self:operand(x)
  local z = x * y + 2
  for _ = 1, self.random(9) do z = tensor[self:one_of {"add", "mul", "sub"}](z, self:operand(x)) end
  return z
end

-- More inputs than a group has.
function statements:wide_chain()
  local x = self:pick()
  local shape = x.shape
  for _ = 1, 11 do x = x + self:fresh(shape, self:chance(2) and "float32" or nil) end
  return x
end

function statements:where()
  local x = self:pick()
  local mask, y, z = self:mask(x), self:operand(x), self:operand(x)
  return tensor.where(mask, y, z)
end

function statements:where_of_numbers()
  local x = self:pick()
  return tensor.where(x, self:number(), self:operand(x))
end

function statements:test_and_use()
  local x = self:pick()
  local mask = self:mask(x)
  self:keep(mask)
  return mask * x + mask
end

function statements:in_place()
  local x = self:pick()
  local y = self:operand(x)
  if type(y) == "userdata" and self:chance(2) then y = y:to(x.dtype) end
  local name = self:one_of {"add_", "sub_", "mul_", "maximum_", "minimum_", "lt_", "eq_",
                            "bitwise_xor_", "logical_and_", "div_"}
  x[name](x, y)
end

function statements:in_place_unary()
  local x = self:pick()
  x[self:one_of(UNARY) .. "_"](x)
end

function statements:in_place_view()
  local x = self:view(self:pick())
  local y = self:operand(x)
  x[self:one_of {"add_", "mul_", "copy_", "sub_"}](x, y)
end

-- Of a part that overlaps the one written.
function statements:overlap()
  local x = self:pick()
  local n = x:numel()
  if n < 4 then return end
  local flat = x:reshape(-1)
  local at = self.random(3)
  flat[{ {1, n - at} }]:copy_(flat[{ {1 + at, n} }])
  if self:chance(2) then flat[{ {1 + at, n} }]:add_(flat[{ {1, n - at} }]) end
end

function statements:fill()
  local x = self:chance(2) and self:pick() or self:view(self:pick())
  x:fill_(self:number())
end

function statements:masked_fill()
  local x = self:pick()
  local mask = self:mask(x)
  if self:chance(2) then return x:masked_fill(mask, self:number()) end
  x:masked_fill_(mask, self:number())
end

function statements:masked_assign()
  local x = self:pick()
  local mask = self:mask(x)
  x[mask] = self:number()
end

function statements:cast()
  local x = self:pick()
  return x:to(self:one_of(DTYPES))
end

function statements:copy()
  local x = self:pick()
  local y = self:operand(x)
  if type(y) ~= "userdata" then return x:clone() end
  x:copy_(y)
end

function statements:view_kept() return self:view(self:pick()) end

function statements:copied_view() return self:view(self:pick()):clone() end

function statements:back_to_shape()
  local x = self:pick()
  if x:numel() ~= self.numel then return self:fresh() end
  return x:reshape(self.shape)
end

function statements:reduce()
  local x, name = self:pick(), self:one_of(REDUCTIONS)
  local ndim, kind, keep = x.ndim, self.random(3), self:chance(2)
  local d = self.random(math.max(ndim, 1))
  local e = self.random(math.max(ndim, 1))
  if self:chance(2) then x = x * self:operand(x) end
  if kind == 1 or ndim == 0 or x.ndim ~= ndim then return x[name](x) end
  if kind == 2 or d == e then return x[name](x, d, keep) end
  return x[name](x, {d, e}, keep)
end

function statements:reduce_group()
  local x = self:pick()
  local mask = self:mask(x)
  local y = x + mask
  self:keep(self:chance(2) and mask[self:one_of {"any", "all", "sum", "count_nonzero"}](mask)
            or y[self:one_of {"sum", "amax", "prod", "mean"}](y))
  if x.ndim > 0 and x:numel() > 0 then
    return (y - y:amax(self.random(x.ndim), true)):exp():sum(x.ndim)
  end
end

function statements:extremes()
  local x = self:pick()
  if x.ndim == 0 or x:numel() == 0 then return end
  local values, places = x:max(self.random(x.ndim))
  self:keep(values)
  return places
end

function statements:along()
  local x = self:pick()
  if x.ndim == 0 then return end
  local d = self.random(x.ndim)
  local name = self:one_of {"cumsum", "cumprod", "sort", "argsort", "cummax"}
  return (x[name](x, d))
end

function statements:gather()
  local x = self:pick()
  if x.ndim == 0 or x:numel() == 0 then return end
  local d = self.random(x.ndim)
  return x:index_select(d, self:indices(x:size(d), x:size(d)))
end

function statements:index_read()
  local x = self:pick()
  if x.ndim == 0 or x:numel() == 0 then return end
  return x[self:indices(x:size(1), 1 + self.random(20))]
end

function statements:index_write()
  local x = self:pick()
  if x.ndim == 0 or x:numel() == 0 then return end
  local places, value = self:indices(x:size(1), 1 + self.random(20)), self:number()
  if self:chance(2) then
    x[places] = value
  else
    x:index_add_(1, places, self:fresh({places:numel(), table.unpack(x.shape, 2)}, x.dtype))
  end
end

function statements:scatter()
  local x = self:pick()
  if x.ndim ~= 1 or x:numel() == 0 then return end
  local places = self:indices(x:numel(), x:numel())
  local values = self:fresh(x.shape, x.dtype)
  local name = self:one_of {"scatter_", "scatter_add_", "scatter", "index_copy_", "gather"}
  if name == "gather" then return x:gather(1, places) end
  local y = x[name](x, 1, places, values)
  if name == "scatter" then return y end
end

function statements:select_by_mask()
  local x = self:pick()
  local mask = self:mask(x)
  if self:chance(2) then return x:masked_select(mask) end
  x:masked_scatter_(mask, self:fresh({x:numel()}, x.dtype))
end

function statements:assign()
  local x = self:pick()
  if x.ndim == 0 or x:numel() == 0 then return end
  local first, last = self.random(x:size(1)), self.random(x:size(1))
  if first > last then first, last = last, first end
  local source = self:chance(2) and self:number() or x[{ {first, last} }]:flip(1) + 1
  x[{ {first, last} }] = source
end

function statements:singular()
  if not self.failing then return self:fresh() end
  local a = tensor.eye(3) * (tensor.rand(3, 3):gt(0.4))
  return tensor.linalg.inv(a):sum():expand(self.shape)
end

function statements:product()
  local x = self:pick()
  if x.ndim ~= 2 or x:numel() == 0 or CATEGORY[x.dtype] then return end
  local y = x:narrow(1, 1, math.min(x:size(1), 16)):to("float32")
  return y:mm(y:t())
end

function statements:compiled()
  local x = self:pick()
  local names, operands = {}, {}
  for i = 1, self.random(8) do
    names[i] = self:one_of(self:chance(3) and TESTS or {"add", "mul", "sub", "maximum"})
    operands[i] = self:chance(2) and self.random(5) or self:operand(x)
  end
  local f = tensor.compile(function(a)
    local y = a
    for i, name in ipairs(names) do y = tensor[name](y, operands[i]) end
    return y, y:sum(), a + 1
  end)
  for _ = 1, 2 do
    local y, total, more = f(x)
    self:keep(y)
    self:keep(total)
    self:keep(more)
  end
end

function statements:read()
  local x = self:pick()
  self:record(self:chance(2) and x or x:sum())
end

function statements:read_element()
  local x = self:pick()
  if x:numel() > 0 then self:record(x:reshape(-1)[self.random(x:numel())]) end
end

-- Keeps a lane busy, so that what follows gathers in the queue and is joined.
function statements:busy() self.busy = self.big:mm(self.big) end

function statements:release() table.remove(self.live, self.random(#self.live)) end

function statements:close()
  local x = self:pick()
  local y <close> = x * 2 -- released at once
  return y + x
end

function statements:collect() collectgarbage(self:chance(2) and "collect" or "step") end

function statements:replace()
  self.live[self.random(#self.live)] = self:fresh(self:chance(3) and self:one_of(SHAPES) or nil)
end

local WEIGHTS = {
  binary = 14, unary = 8, failing_binary = 3, chain = 8, wide_chain = 1, where = 5,
  where_of_numbers = 2, test_and_use = 4, in_place = 8, in_place_unary = 4, in_place_view = 5,
  overlap = 2, fill = 4, masked_fill = 3, masked_assign = 2, cast = 5, copy = 3, view_kept = 4,
  copied_view = 3, back_to_shape = 4, reduce = 8, reduce_group = 5, extremes = 1, along = 2,
  gather = 2, index_read = 1, index_write = 2, scatter = 1, select_by_mask = 1, assign = 3,
  several = 3, singular = 1, product = 1, compiled = 2, read = 3, read_element = 2, busy = 6,
  release = 4, close = 3, collect = 2, replace = 4,
}
local bag = {}
do
  local names = {}
  for name in pairs(WEIGHTS) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    for _ = 1, WEIGHTS[name] do bag[#bag + 1] = name end
  end
end

-- ---- what is compared ----

local PIECE = 200 -- values packed at once
local FORMATS = {float = ("<n"):rep(PIECE), integer = ("<j"):rep(PIECE)}

-- The bits of a tensor, all nans being one, or the error of reading it.
function M.bits(x)
  local head, kind = ("%s %s "):format(x.dtype, table.concat(x.shape, "x")), "integer"
  local _, result = pcall(function()
    if not CATEGORY[x.dtype] then
      x, kind = tensor.where(x:isnan(), NAN, x), "float"
    elseif x.dtype == "bool" then
      x = x:to("uint8")
    end
    local values, text = x:reshape(-1):totable(), {}
    for i = 1, #values - PIECE + 1, PIECE do
      text[#text + 1] = string.pack(FORMATS[kind], table.unpack(values, i, i + PIECE - 1))
    end
    local rest = #values % PIECE
    local format = FORMATS[kind]:sub(1, 2 * rest)
    text[#text + 1] = string.pack(format, table.unpack(values, #values - rest + 1, #values))
    return table.concat(text)
  end)
  return head .. result
end

function Program:record(x)
  self.values[#self.values + 1] = self.statement .. " " .. M.bits(x)
end

-- Runs the program of a seed and gives what it read, and what is left at its end, as a list of
-- strings; the last ones are the failures that nobody has seen.  `trace`: says what it does.
function M.run(seed, steps, trace)
  math.randomseed(seed)
  tensor.manual_seed(seed)
  local self = setmetatable({random = math.random, live = {}, values = {}}, Program)
  self.failing = seed % M.FAILING == 0
  self.statement = "start"
  self.big = tensor.ones(300, 300)
  self.shape = self:one_of(SHAPES)
  self.numel = 1
  for _, size in ipairs(self.shape) do self.numel = self.numel * size end
  for i = 1, 6 do self.live[i] = self:fresh() end
  for i = 1, steps do
    local name = bag[self.random(#bag)]
    self.statement = i .. " " .. name
    if trace then print(self.statement) end
    local ok, result = pcall(statements[name], self)
    if not ok then
      self.values[#self.values + 1] = self.statement .. ": " .. tostring(result)
    elseif result then
      self:keep(result)
    end
    if #self.live == 0 then self.live[1] = self:fresh() end
  end
  for i, x in ipairs(self.live) do
    self.statement = "end " .. i
    self:record(x)
  end
  self.live = nil
  for _ = 1, 1000 do
    local ok, message = pcall(sync)
    if ok then break end
    self.values[#self.values + 1] = "sync: " .. message
  end
  return self.values
end

local function printable(value) return (tostring(value):sub(1, 200):gsub("%c", ".")) end

-- Where two runs differ first, or nil.
function M.difference(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then
      return ("value %d of %d: %s, but %s"):format(i, #a, printable(a[i]), printable(b[i]))
    end
  end
end

return M
