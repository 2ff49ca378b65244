-- Reductions of several steps, and several dimensions at once, against NumPy.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

-- Questions to NumPy, asked all at once: a tensor that must have the values of `code` over x,
-- within rtol; x is an array of that data, shape and dtype.
local questions = {data = {}, code = {}, wanted = {}}

local function agrees(t, code, data, shape, dtype, rtol)
  questions.code[#questions.code + 1] = ([[
x = np.array(data[%d:%d], dtype='%s').reshape(%s)
result += list(np.ravel(np.asarray(%s, dtype='float64')))]]):format(
    #questions.data, #questions.data + #data, dtype, "[" .. table.concat(shape, ",") .. "]", code)
  table.move(data, 1, #data, #questions.data + 1, questions.data)
  table.insert(questions.wanted, {t = t, what = code, rtol = rtol})
end

local function settle()
  local code = "result = []\n" .. table.concat(questions.code, "\n")
  local wanted = support.numpy(code, questions.data)
  if not wanted then lu.skip "no NumPy" end
  local at = 0
  for _, question in ipairs(questions.wanted) do
    for i, got in ipairs(support.flat(question.t)) do
      at = at + 1
      local want = wanted[at]
      local close = math.abs(got - want) <= question.rtol * math.max(1, math.abs(want))
      lu.assertTrue(close or got == want or got ~= got and want ~= want,
                    ("%s: element %d is %s, not %s"):format(question.what, i, got, want))
    end
  end
  equals(at, #wanted)
  questions = {data = {}, code = {}, wanted = {}}
end

TestSeveralDimensions = {}

local REDUCTIONS = {sum = "sum", prod = "prod", mean = "mean", amax = "max", amin = "min"}

function TestSeveralDimensions:test_every_reduction()
  local shape = {3, 4, 5}
  local data = support.random_data(60, -2, 2)
  for _, layout in ipairs(support.layouts(shape, data, "float32")) do
    local x = layout[2]
    for _, dims in ipairs {{1}, {1, 3}, {3, 1}, {2, 3}, {1, 2, 3}, {-1, 2}} do
      local axes = {}
      for i, d in ipairs(dims) do axes[i] = d < 0 and d or d - 1 end
      local axis = "(" .. table.concat(axes, ",") .. ",)"
      for name, call in pairs(REDUCTIONS) do
        for _, keep in ipairs {true, false} do
          local code = ("np.%s(x.astype('float64'), axis=%s, keepdims=%s)"):format(call, axis,
            keep and "True" or "False")
          local result = x[name](x, dims, keep)
          equals(result.ndim, keep and 3 or 3 - #dims)
          agrees(result, code, data, shape, "float32", 1e-6)
        end
      end
    end
  end
  settle()
end

function TestSeveralDimensions:test_integers_are_exact()
  local big = tensor({1 << 60, 3, -(1 << 60)}, {dtype = "int64"})
  equals(big:sum():item(), 3)
  equals(big:amax():item(), 1 << 60)
  equals(big:amin():item(), -(1 << 60))
  equals(tensor({100, 100}, {dtype = "int8"}):sum():item(), 200)
  equals(tensor({100, 100}, {dtype = "int8"}):sum().dtype, "int64")
  equals(tensor{true, true, false}:sum():item(), 2)
  equals(tensor({7, 8}, {dtype = "int32"}):mean().dtype, "float32")
  equals(tensor({7, 8}, {dtype = "int32"}):mean():item(), 7.5)
  equals(tensor({3, 5}, {dtype = "uint8"}):prod():item(), 15)
end

function TestSeveralDimensions:test_nothing_to_reduce()
  local none = tensor.zeros(2, 0)
  equals(none:sum(2):totable(), {0, 0})
  equals(none:prod(2):totable(), {1, 1})
  equals(none:any(2):totable(), {false, false})
  equals(none:all(2):totable(), {true, true})
  equals(none:sum(1).shape, {0})
  raises("amax: a tensor of size 2x0 has no elements to choose from", none.amax, none, 2)
end

function TestSeveralDimensions:test_wrong_dimensions()
  local x = tensor.ones(2, 3)
  raises("sum: dimension 2 is named twice", x.sum, x, {2, -1})
  raises("sum: dimension 3 is out of range for a tensor of size 2x3", x.sum, x, {1, 3})
  raises("sum: a dimension must be an integer, not string", x.sum, x, {"1"})
end

function TestSeveralDimensions:test_truth()
  local x = tensor{{0, 2, 0 / 0}, {0, 0, 0}}
  equals(x:any(2):totable(), {true, false})
  equals(x:all(1):totable(), {false, false, false})
  equals(x:any():item(), true)
  equals(x:any().dtype, "bool")
end

TestStatistics = {}

local CASES = {
  {function(x, d, k) return x:var(d, k) end,
   "np.var(x.astype('f8'), axis=%s, ddof=1, keepdims=%s)"},
  {function(x, d, k) return x:std(d, {keepdim = k, correction = 0}) end,
   "np.std(x.astype('f8'), axis=%s, keepdims=%s)"},
  {function(x, d, k) return x:norm(2, d, k) end,
   "np.sqrt((x.astype('f8')**2).sum(axis=%s, keepdims=%s))"},
  {function(x, d, k) return x:norm(1, d, k) end, "abs(x.astype('f8')).sum(axis=%s, keepdims=%s)"},
  {function(x, d, k) return x:norm(3, d, k) end,
   "(abs(x.astype('f8'))**3).sum(axis=%s, keepdims=%s)**(1/3)"},
  {function(x, d, k) return x:norm(math.huge, d, k) end, "abs(x).max(axis=%s, keepdims=%s)"},
  {function(x, d, k) return x:logsumexp(d, k) end,
   "np.log(np.exp(x.astype('f8')).sum(axis=%s, keepdims=%s))"},
}

function TestStatistics:test_against_numpy()
  local shape = {4, 3, 6}
  for _, dtype in ipairs {"float32", "float64", "float16"} do
    local data = support.random_data(72, -3, 3)
    for i = 1, #data do data[i] = math.floor(data[i] * 64) / 64 end -- exact in every dtype
    local x = support.tensor(shape, data, dtype)
    local rtol = dtype == "float16" and 1e-3 or dtype == "float32" and 1e-6 or 1e-12
    for _, case in ipairs(CASES) do
      for _, dims in ipairs {{nil, "None"}, {2, "1"}, {{1, 3}, "(0,2)"}} do
        local result = case[1](x, dims[1], true)
        equals(result.dtype, dtype)
        agrees(result, case[2]:format(dims[2], "True"), data, shape, dtype, rtol)
      end
    end
    for _, dim in ipairs {1, 2, -1} do
      local axis = dim < 0 and dim or dim - 1
      local soft = "(lambda e: e / e.sum(axis=%d, keepdims=True))(np.exp(x.astype('f8')))"
      soft = soft:format(axis)
      agrees(x:softmax(dim), soft, data, shape, dtype, rtol)
      agrees(x:log_softmax(dim), "np.log(" .. soft .. ")", data, shape, dtype, rtol * 4)
    end
  end
  settle()
end

function TestStatistics:test_extremes()
  local inf = math.huge
  equals(tensor{-inf, -inf}:logsumexp():item(), -inf)
  equals(tensor{inf, 1}:logsumexp():item(), inf)
  equals(tensor{1e30, 1e30}:softmax(1):totable(), {0.5, 0.5})
  equals(tensor{-1024, 0}:log_softmax(1):totable(), {-1024, 0})
  equals(tensor.zeros(0):logsumexp():item(), -inf)
  lu.assertTrue(tensor{1}:var():isnan():item())
  equals(tensor{1, 0 / 0, 3}:nanmean():item(), 2)
end

function TestStatistics:test_wrong_arguments()
  local x = tensor.ones(2, 3)
  raises("var: unknown option 'ddof'", x.var, x, 1, {ddof = 0})
  raises("var: option correction must be a number, not string", x.var, x, 1, {correction = "1"})
  raises("std: keepdim must be true or false, not number", x.std, x, 1, 1)
  raises("norm: p must be a number, not string", x.norm, x, "fro")
  raises("softmax: dimension 3 is out of range for a tensor of size 2x3", x.softmax, x, 3)
  raises("logsumexp: amax: dimension 3 is out of range for a tensor of size 2x3", x.logsumexp, x, 3)
end

os.exit(lu.LuaUnit.run())
