-- Products of batches, outer, addmm and einsum: small integers, which every order of summation
-- gives exactly, against NumPy; and what is refused.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"
local equals, raises = lu.assertEquals, support.assert_raises

-- Runs cases, each {code of x[1], x[2], ..., shape, shape, ...}, in one NumPy program: calls
-- check(case, operands as flat lists, shape, values) with what NumPy gives.
local function each_against_numpy(cases, check)
  local data, program, operands = {}, {"result = []"}, {}
  for c, case in ipairs(cases) do
    local names = {}
    operands[c] = {}
    for i = 2, #case do
      local flat = support.random_integers(support.numel(case[i]), -5, 5)
      names[i - 1] = ("np.array(data[%d:%d]).reshape(%s)"):format(#data, #data + #flat,
        #case[i] == 0 and "()" or table.concat(case[i], ","))
      table.move(flat, 1, #flat, #data + 1, data)
      operands[c][i - 1] = flat
    end
    program[#program + 1] = ("x = [%s]"):format(table.concat(names, ", "))
    program[#program + 1] = ("y = np.asarray(%s)"):format(case[1])
    program[#program + 1] = "result += [y.ndim, *y.shape, *y.ravel()]"
  end
  local result = support.numpy(table.concat(program, "\n"), data)
  lu.skipIf(not result, "needs NumPy")
  local at = 1
  for c, case in ipairs(cases) do
    local shape = {}
    for d = 1, result[at] do shape[d] = math.tointeger(result[at + d]) end
    at = at + #shape + 1
    local count = support.numel(shape)
    check(case, operands[c], shape, table.move(result, at, at + count - 1, 1, {}))
    at = at + count
  end
end

local function tensors(case, operands, dtype)
  local list = {}
  for i = 2, #case do list[i - 1] = support.any_layout(case[i], operands[i - 1], dtype) end
  return table.unpack(list)
end

local REPEATS = support.slow and 1 or 4

TestBatches = {}

function TestBatches:test_matmul()
  local code, cases = "x[0] @ x[1]", {}
  for _, shapes in ipairs {
    {{2, 3, 4}, {2, 4, 5}}, {{3, 1, 2, 4}, {2, 4, 3}}, {{2, 4, 3}, {3, 1, 3, 2}},
    {{2, 3, 4}, {4, 5}}, {{3, 4}, {2, 4, 5}}, {{4}, {2, 4, 5}}, {{2, 3, 4}, {4}},
    {{2, 3, 4}, {1, 4, 1}}, {{1, 1, 1}, {2, 1, 1}}, {{2, 2, 3, 1}, {2, 1, 3}},
    {{2, 1, 7}, {2, 7, 1}},
    {{0, 3, 4}, {4, 5}}, {{0, 3, 4}, {1, 4, 5}}, {{2, 3, 0}, {2, 0, 5}}, {{2, 3, 0}, {0}},
    {{2, 0, 3}, {3, 4}}, {{2, 1, 1, 2, 1, 2, 3}, {1, 2, 1, 1, 2, 3, 2}}, {{3, 40, 50}, {50, 60}},
  } do
    cases[#cases + 1] = {code, shapes[1], shapes[2]}
  end
  each_against_numpy(cases, function(case, operands, shape, values)
    for _, dtype in ipairs {"float32", "float64"} do
      for _ = 1, REPEATS do
        local x, y = tensors(case, operands, dtype)
        support.assert_values(x:matmul(y), shape, values, support.shape_text(case[2]) .. " @ " ..
          support.shape_text(case[3]), 0)
      end
    end
  end)
end

function TestBatches:test_bmm()
  local cases = {{"x[0] @ x[1]", {5, 3, 4}, {5, 4, 2}}, {"x[0] @ x[1]", {0, 3, 4}, {0, 4, 2}},
                 {"x[0] @ x[1]", {500, 2, 3}, {500, 3, 2}}}
  each_against_numpy(cases, function(case, operands, shape, values)
    for _ = 1, REPEATS do
      support.assert_values(tensor.bmm(tensors(case, operands, "float32")), shape, values, "bmm", 0)
    end
  end)
end

-- A batch is cut as its products are by themselves, and large enough ones not at all.
function TestBatches:test_same_bits_on_any_number_of_threads()
  local n = support.slow and 40 or 300
  tensor.manual_seed(3)
  local few, many = tensor.randn(3, n, n), tensor.randn(20, 30, 40)
  local one = tensor.randn(n, n)
  local first
  support.each_thread_count(function()
    local results = {few:bmm(few), few:bmm(few:transpose(2, 3)), one:matmul(few), few:matmul(one),
                     many:bmm(many:transpose(2, 3)), many:matmul(tensor.ones(40))}
    first = first or results
    for i = 1, #results do lu.assertTrue(results[i] == first[i], i) end
  end)
  for i = 1, 3 do lu.assertTrue(first[1][i] == few[i]:mm(few[i])) end
end

function TestBatches:test_errors()
  local ones = tensor.ones
  raises("bmm: wants two batches of as many matrices, not sizes 2x3x4 and 3x4x5", tensor.bmm,
         ones(2, 3, 4), ones(3, 4, 5))
  raises("bmm: wants two batches of as many matrices, not sizes 3x4 and 4x5", tensor.bmm,
         ones(3, 4), ones(4, 5))
  raises("bmm: cannot multiply 2x3x4 by 2x5x6: inner sizes 4 and 5 differ", tensor.bmm,
         ones(2, 3, 4), ones(2, 5, 6))
  raises("matmul: cannot multiply 2x3x4 by 3x4x5: their batches do not broadcast", tensor.matmul,
         ones(2, 3, 4), ones(3, 4, 5))
  raises("matmul: cannot multiply 2x3x4 by 3: inner sizes 4 and 3 differ", tensor.matmul,
         ones(2, 3, 4), ones(3))
  raises("bmm: operands are float32 and float64: convert one with :to()", tensor.bmm, ones(1, 1, 1),
         ones(1, 1, 1, {dtype = "float64"}))
end

TestOuter = {}

function TestOuter:test_values()
  equals(tensor{1, 2}:outer(tensor{3, 4, 5}):totable(), {{3, 4, 5}, {6, 8, 10}})
  equals(tensor.outer(tensor.zeros(0), tensor.ones(2)).shape, {0, 2})
  raises("outer: wants a vector and a vector, not sizes 1x2 and ()", tensor.outer,
         tensor.ones(1, 2), tensor(1))
  raises("outer: 3 arguments are too many: at most 2", tensor.outer, tensor.ones(1), tensor.ones(1),
         1)
  raises("outer: argument 2 must be a tensor, not number", tensor.outer, tensor.ones(1), 2)
end

TestAddmm = {}

function TestAddmm:test_values()
  local x, a, b = tensor{{1, 2}}, tensor{{1, 2, 3}}, tensor{{1, 0}, {0, 1}, {1, 1}}
  equals(tensor.addmm(x, a, b):totable(), {{5, 7}})
  equals(x:addmm(a, b, {beta = 2, alpha = 10}):totable(), {{42, 54}})
  equals(x:addmm(a, b, 2, 10):totable(), {{42, 54}})
  equals(x:addmm(a, b, {alpha = 0}):totable(), {{1, 2}})
  equals(tensor(0 / 0):addmm(a, b, {beta = 0}):totable(), {{4, 5}})
  equals(tensor{10, 20}:addmm(a, b):totable(), {{14, 25}})
  equals(tensor.addmm(tensor.ones(2, 2), tensor.zeros(2, 0), tensor.zeros(0, 2)):totable(),
         {{1, 1}, {1, 1}})
end

function TestAddmm:test_in_place()
  local x, a = tensor{{1, 2}, {3, 4}}, tensor{{0, 1}, {1, 0}}
  local view = x[1]
  equals(x:addmm_(a, x):totable(), {{4, 6}, {4, 6}})
  equals(view:totable(), {4, 6})
end

function TestAddmm:test_errors()
  local ones = tensor.ones
  raises("addmm: cannot multiply 2x3 by 2x3", tensor.addmm, ones(1), ones(2, 3), ones(2, 3))
  raises("addmm: cannot add 2x2 to size 3", tensor.addmm, ones(3), ones(2, 3), ones(3, 2))
  raises("addmm_: cannot put 2x2 into size 2", tensor.addmm_, ones(2), ones(2, 3), ones(3, 2))
  raises("addmm: unknown option 'gamma': beta or alpha", tensor.addmm, ones(1), ones(1, 1),
         ones(1, 1), {gamma = 1})
  raises("addmm: beta and alpha must be numbers, not text and 1", tensor.addmm, ones(1), ones(1, 1),
         ones(1, 1), {beta = "text"})
  raises("addmm: 6 arguments are too many: at most 5", tensor.addmm, ones(1), ones(1, 1),
         ones(1, 1), 1, 1, 1)
  raises("addmm: operands are float64, float32 and float32: convert them with :to()", tensor.addmm,
         ones(1, {dtype = "float64"}), ones(1, 1), ones(1, 1))
end

TestEinsum = {}

local FORMULAS = {
  {"ij->ji", {2, 3}}, {"ij", {2, 3}}, {"ji", {2, 3}}, {"ii", {3, 3}}, {"ii->i", {3, 3}},
  {"ij->", {2, 3}}, {"ij->j", {2, 3}}, {"ijj->i", {2, 3, 3}}, {"iji->ji", {2, 3, 2}},
  {"iiii->i", {2, 2, 2, 2}}, {"->", {}}, {"i->i", {0}}, {"i->", {0}},
  {"i,i", {4}, {4}}, {"i,j", {2}, {3}}, {"i,j->ji", {2}, {3}}, {"i,i->i", {4}, {4}},
  {"ij,jk", {2, 3}, {3, 4}}, {"ij,jk->ki", {2, 3}, {3, 4}}, {"ij,kj->ik", {2, 3}, {4, 3}},
  {"ij,j", {2, 3}, {3}}, {"ij,ij->", {2, 3}, {2, 3}}, {"ij,ji->", {2, 3}, {3, 2}},
  {"ij,ij->ij", {2, 3}, {2, 3}}, {"bij,bjk->bik", {2, 3, 4}, {2, 4, 5}},
  {"bij,bjk->kib", {2, 3, 4}, {2, 4, 5}}, {"bij,bjk", {2, 3, 4}, {2, 4, 5}},
  {"abij,abjk->abik", {2, 3, 2, 4}, {2, 3, 4, 2}}, {"ba,ca->bc", {2, 3}, {4, 3}},
  {"aij,jk->aik", {2, 3, 4}, {4, 2}}, {"ijk,jkl->il", {2, 3, 4}, {3, 4, 5}},
  {"ijk,kjl->il", {2, 3, 4}, {4, 3, 5}}, {"ij,k->ijk", {2, 3}, {4}},
  {"iij,jk->ik", {2, 2, 3}, {3, 4}},
  {"ii,jj->ij", {2, 2}, {3, 3}}, {"ij,kl->", {2, 3}, {4, 2}}, {"ijk,il->jl", {2, 3, 4}, {2, 5}},
  {"...ij,...jk->...ik", {2, 3, 4}, {2, 4, 5}}, {"...ij,...jk->...ik", {5, 1, 2, 3}, {4, 3, 2}},
  {"...ij,jk", {2, 3, 4}, {4, 5}}, {"...ii->...i", {2, 3, 3}}, {"...ii", {2, 3, 3}},
  {"i...->...i", {2, 3, 4}}, {"i...->...", {2, 3, 4}}, {"...,...", {2, 3}, {3}},
  {"...i,...i->...", {2, 3}, {2, 3}}, {"i...j,j->i...", {2, 3, 4}, {4}}, {"...,i->i...", {2}, {3}},
  {",ij", {}, {2, 3}}, {"bn,anm,bm->ba", {2, 3}, {4, 3, 5}, {2, 5}}, {"i,i,i->i", {3}, {3}, {3}},
  {"ab,bc,cd->da", {2, 3}, {3, 4}, {4, 2}}, {"ij,jk,kl,lm->im", {2, 3}, {3, 2}, {2, 4}, {4, 3}},
  {"ij,ik,il->jkl", {2, 3}, {2, 4}, {2, 5}}, {"ij,jk->ik", {2, 0}, {0, 3}},
  {"ij,jk", {0, 2}, {2, 3}},
  {" i j , j k -> i k ", {2, 3}, {3, 4}}, {"bA,aB", {2, 3}, {2, 3}},
  {"ij,jk->ik", {40, 50}, {50, 30}},
  {"abcdefg->gfedcba", {1, 2, 1, 2, 1, 2, 1}}, {"abcd,cdef,efab->", {2, 3, 2, 2}, {2, 2, 3, 2},
   {3, 2, 2, 3}},
}

function TestEinsum:test_against_numpy()
  local cases = {}
  for i, formula in ipairs(FORMULAS) do
    local code = ("np.einsum('%s', *x)"):format(formula[1])
    cases[i] = {code, table.unpack(formula, 2)}
  end
  local number = 0
  each_against_numpy(cases, function(case, operands, shape, values)
    number = number + 1
    local formula = FORMULAS[number][1]
    for _, dtype in ipairs {"float32", "float64"} do
      for _ = 1, REPEATS do
        local result = tensor.einsum(formula, tensors(case, operands, dtype))
        support.assert_values(result, shape, values, formula, 0)
        equals(result.dtype, dtype)
      end
    end
  end)
end

function TestEinsum:test_sizes_of_one_broadcast()
  local x, y = tensor{{1}, {2}}, tensor{{1, 2}, {3, 4}, {5, 6}}
  equals(tensor.einsum("ij,jk->ik", x, y):totable(), {{9, 12}, {18, 24}})
  equals(tensor.einsum("ij,jk->ijk", x, y).shape, {2, 3, 2})
  equals(tensor.einsum("ij,ij->ij", x, tensor{{10, 20}}):totable(), {{10, 20}, {20, 40}})
end

function TestEinsum:test_tensors_in_a_table_and_views()
  local x = tensor{{1, 2}, {3, 4}}
  equals(tensor.einsum("ij,jk->ik", {x, x}):totable(), {{7, 10}, {15, 22}})
  local diagonal = tensor.einsum("ii->i", x) -- shares the memory of x
  x:fill_(9)
  equals(diagonal:totable(), {9, 9})
end

function TestEinsum:test_errors()
  local einsum, ones = tensor.einsum, tensor.ones
  raises("einsum: the formula must be a string, not nil", einsum)
  raises("einsum: wants tensors after the formula", einsum, "ij")
  raises("einsum: operand 1 must be a tensor, not number", einsum, "ij", 1)
  raises("einsum: operand 2 must be a tensor, not nil", einsum, "i,i", ones(1), nil)
  raises("einsum: 'ij,jk' is for 2 operands, not 1", einsum, "ij,jk", ones(2, 2))
  raises("einsum: 'ijk' has 3 labels for operand 1, whose size is 2x2", einsum, "ijk", ones(2, 2))
  raises("einsum: 'i' has 1 labels for operand 1, whose size is 2x2", einsum, "i", ones(2, 2))
  raises("einsum: 'ij...k,i' has 3 labels for operand 1, whose size is ()", einsum, "ij...k,i",
         tensor(1), ones(2))
  raises("einsum: '1' of 'i1' is neither a letter nor '...'", einsum, "i1", ones(2, 2))
  raises("einsum: '.' of 'i..' is neither a letter nor '...'", einsum, "i..", ones(2, 2))
  raises("einsum: '-' of 'i-j' is neither a letter nor '...'", einsum, "i-j", ones(2, 2))
  raises("einsum: '...i...' has '...' twice for one operand", einsum, "...i...", ones(2, 2))
  raises("einsum: 'ij->ii' gives 'i' twice", einsum, "ij->ii", ones(2, 2))
  raises("einsum: 'ij->k' gives 'k', which no operand has", einsum, "ij->k", ones(2, 2))
  raises("einsum: 'j' is 3 in operand 1, and 4 in operand 2", einsum, "ij,jk", ones(2, 3),
         ones(4, 5))
  raises("einsum: 'i' is 2 in operand 1, and 3 in operand 1", einsum, "ii", ones(2, 3))
  raises("einsum: a dimension of '...' is 3 in operand 1, and 4 in operand 2", einsum, "...,...",
         ones(2, 3), ones(4))
  raises("einsum: operands 1 and 2 are float32 and float64: convert one with :to()", einsum, "i,i",
         ones(2), ones(2, {dtype = "float64"}))
  raises("einsum: 9 dimensions are too many: at most 8", einsum, "abcde,fghi", ones(1, 1, 1, 1, 1),
         ones(1, 1, 1, 1))
end

TestCompiled = {}

function TestCompiled:test_same_values()
  local f = tensor.compile(function(x, y)
    return tensor.einsum("bij,bjk->bki", x, y), x:matmul(y), x:bmm(y):sum(), x[1]:addmm(x[1], y[1])
  end)
  for i = 1, 4 do
    local x, y = tensor.randn(3, 4, 4), tensor.randn(3, 4, 4)
    local turned, product, sum, added = f(x, y)
    lu.assertTrue(product == x:matmul(y), i)
    lu.assertTrue(turned == product:transpose(2, 3), i)
    lu.assertTrue(sum == product:sum(), i)
    lu.assertTrue(added == x[1]:addmm(x[1], y[1]), i)
  end
end

os.exit(lu.LuaUnit.run())
