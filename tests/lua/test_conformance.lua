-- Every function of the library against NumPy: random shapes, layouts, dtypes and special values.
--
-- tests/conformance/generate.py writes the cases, operands and results: within how many units in
-- the last place each must agree stands with the function there.  TENSORLUA_TEST_SEED=n makes other
-- ones.

local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path

local lu = require "luaunit"
local support = require "support"

local SEED = tonumber(os.getenv "TENSORLUA_TEST_SEED" or 1)

-- Functions without cases, and who tests them.
local ELSEWHERE = {
  test_random = "rand randn rand_like randn_like randint randint_like normal normal_ uniform_ " ..
    "exponential_ bernoulli bernoulli_ randperm multinomial manual_seed initial_seed generator " ..
    "get_rng_state set_rng_state",
  test_files = "save load tofile fromfile save_csv load_csv",
  test_linalg = "linalg.solve linalg.inv linalg.det linalg.slogdet linalg.cholesky linalg.qr " ..
    "linalg.svd linalg.svdvals linalg.eigh linalg.eigvalsh linalg.eig linalg.eigvals " ..
    "linalg.lstsq linalg.norm linalg.matrix_rank linalg.pinv",
  test_compile = "compile",
  test_benchmark = "benchmark",
  test_control = "sync is_ready set_num_threads get_num_threads memory empty_cache",
  test_fusion = "fusion",
  test_format = "tostring set_printoptions get_printoptions",
  test_help = "help",
}

-- ---- operands ----

local FILL = {bool = true}
for _, dtype in ipairs {"int64", "int32", "int16", "int8", "uint8"} do FILL[dtype] = 113 end

-- A part of a larger tensor, of which nothing else may be read.
local function within(outer, key, t)
  local whole = tensor.full(outer, FILL[t.dtype] or 0 / 0, {dtype = t.dtype})
  local part = #key > 0 and whole[key] or whole
  return part:copy_(t)
end

local function ranged(t, step)
  local outer, key = {}, {}
  for d, size in ipairs(t.shape) do
    outer[d] = size * step + 2
    key[d] = size > 0 and {2, 2 + (size - 1) * step, step} or {2, 1}
  end
  return within(outer, key, t)
end

local LAYOUTS = {
  contiguous = function(t) return t end,
  fresh = function(t) return t:clone() end,
  ranged = function(t) return ranged(t, 1) end,
  stepped = function(t) return ranged(t, 2) end,
  expanded = function(t, operand) return t:expand(operand.expanded) end,
  -- The dimensions lie the other way round in memory.
  permuted = function(t)
    local order = {}
    for d = 1, t.ndim do order[d] = t.ndim + 1 - d end
    return t:permute(order):clone():permute(order)
  end,
  -- One of the rows of a tensor with one more dimension, in the middle where there is one.
  selected = function(t)
    local at = t.ndim > 0 and 2 or 1
    local outer, key = t.shape, {}
    table.insert(outer, at, 3)
    for d = 1, #outer do key[d] = d == at and 2 or {} end
    return within(outer, key, t)
  end,
}

-- ---- comparison ----

-- How many numbers of the dtype lie between two.
local function distance(dtype, x, y)
  if dtype == "float16" then
    if math.abs(x) < 0x1p-14 and math.abs(y) < 0x1p-14 then return math.abs(x - y) * 0x1p24 end
    return support.distance("float32", x, y) / 0x1p13
  end
  if dtype == "bfloat16" then return support.distance("float32", x, y) / 0x1p16 end
  return support.distance(dtype, x, y)
end

-- Whether a value is not what it must be.
local function differs(got, want, result)
  if got == want then
    return got == 0 and not result.zeros and math.type(got) == "float" and 1 / got ~= 1 / want
  end
  if got ~= got and want ~= want then return false end
  if math.type(got) ~= "float" then return true end
  local ulps, absolute = result.ulps or 0, result.absolute or 0
  return not (math.abs(got - want) <= absolute or
              ulps > 0 and distance(result.dtype, got, want) <= ulps)
end

local values = 0 -- compared

-- What is wrong with a tensor, or nil.
local function fault(t, result, pool)
  if getmetatable(t) ~= "tensor" then return "is no tensor but " .. tostring(t) end
  if t.dtype ~= result.dtype then return ("is %s, not %s"):format(t.dtype, result.dtype) end
  local shape, want = support.shape_text(t.shape), support.shape_text(result.shape)
  if shape ~= want then return ("has size %s, not %s"):format(shape, want) end
  local got = t:reshape(-1):totable()
  for i = 1, #got do
    if differs(got[i], pool[result.at + i], result) then
      return ("element %d of %s %s is %s, not %s"):format(i, t.dtype, shape, got[i],
                                                        pool[result.at + i])
    end
  end
  values = values + #got
end

-- ---- the cases ----

-- The generator's folder: its manifest, operands and, as tables, results.
local function load_cases()
  local python = support.python()
  if not python then lu.skip "no NumPy" end
  local folder = os.tmpname()
  os.remove(folder)
  local command = ("mkdir %s && %s -B -W ignore %s %s %d %d"):format(folder, python,
    support.quote(here .. "../conformance/generate.py"), folder, support.slow and 5 or 1, SEED)
  local status, out, err = support.shell(command)
  assert(status == 0, out .. err)
  local cases = dofile(folder .. "/manifest.lua")
  local operands, results = {}, {}
  for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16",
                          "int8", "uint8", "bool"} do
    operands[dtype] = tensor.load(("%s/operands_%s.npy"):format(folder, dtype)):to(dtype)
    results[dtype] = tensor.load(("%s/results_%s.npy"):format(folder, dtype)):totable()
  end
  support.shell("rm -r " .. folder)
  return cases, operands, results
end

-- Calls that have the same text are one function.
local compiled = setmetatable({}, {__index = function(self, call)
  local text = "local x, y, z, w = ...; " ..
               (call:find "^local " and call or "return " .. call)
  self[call] = assert(load(text, "=call"))
  return self[call]
end})

-- Enqueues what the case calls for; gives its results.
local function run(case, pools)
  local operands = {}
  for i, operand in ipairs(case.operands) do
    local count = support.numel(operand.shape)
    local t = pools[operand.dtype]:narrow(1, operand.at + 1, count):reshape(operand.shape)
    operands[i] = LAYOUTS[operand.layout](t, operand)
  end
  local got = table.pack(compiled[case.call](table.unpack(operands)))
  return got.n == 1 and type(got[1]) == "table" and case.results and got[1] or got
end

-- Raised at the call where every operation runs to its end there, else where it is waited for.
local function check_error(case, ok, got)
  lu.assertEquals(ok, not support.synchronous, "whether the call returned")
  if ok then ok, got = pcall(got[1].wait, got[1]) end
  pcall(sync) -- what the case left failed is not seen by others
  lu.assertFalse(ok, "no error")
  lu.assertEquals(got:gsub("^[^:]+:%d+: ", ""):sub(1, #case.error), case.error)
  values = values + 1
end

local function check(case, ok, got, pools)
  if case.error then return check_error(case, ok, got) end
  if not ok then error(got, 0) end
  if case.value then
    lu.assertEquals(got[1], case.value())
    values = values + 1
    return
  end
  if #got ~= #case.results then error(("%d results, not %d"):format(#got, #case.results), 0) end
  for i, result in ipairs(case.results) do
    local wrong = fault(got[i], result, pools[result.dtype])
    if wrong then error(("result %d %s"):format(i, wrong), 0) end
  end
end

local function describe(case)
  local list = {}
  for i, operand in ipairs(case.operands) do
    list[i] = ("%s %s %s"):format(operand.layout, operand.dtype,
                                  support.shape_text(operand.expanded or operand.shape))
  end
  return ("%s of %s"):format(case.call, table.concat(list, ", "))
end

local cases, operands, results = load_cases()

-- Every function of the library, and those in tables of it.
local function surface()
  local names = {}
  for _, row in ipairs(require "tensor.functions") do names[row[1]] = true end
  for name, f in pairs(tensor) do
    if type(f) == "function" then names[name] = true end
  end
  return names
end

TestConformance = {}

local BATCH = 64

-- Several cases are in the queue before the first result is looked at.
function TestConformance:test_values()
  local seen, functions, faults, batch = {}, 0, {}, {}

  local function finish()
    for _, one in ipairs(batch) do
      local ok, message = pcall(check, one.case, one.ok, one.got, results)
      if not ok then
        faults[#faults + 1] = ("%s: %s"):format(describe(one.case),
          type(message) == "table" and message.msg or message)
      end
    end
    batch = {}
  end

  for _, case in ipairs(cases) do
    if not seen[case.name] then functions = functions + 1 end
    seen[case.name] = true
    local ok, got = pcall(run, case, operands)
    batch[#batch + 1] = {case = case, ok = ok, got = got}
    if #batch == BATCH then finish() end
  end
  finish()
  print(("# conformance: %d functions, %d cases, %d values"):format(functions, #cases, values))
  lu.assertEquals(#faults, 0, #faults .. " faults:\n" .. table.concat(faults, "\n", 1,
                                                                     math.min(#faults, 60)))
end

function TestConformance:test_every_function_has_cases()
  local seen, names = {}, surface()
  for _, case in ipairs(cases) do
    lu.assertTrue(names[case.name], case.name .. " is no function of the library")
    seen[case.name] = true
  end
  for suite, list in pairs(ELSEWHERE) do
    lu.assertIsString(support.read_file(here .. suite .. ".lua"))
    for name in list:gmatch "%S+" do
      lu.assertTrue(names[name], name .. " is no function of the library")
      lu.assertNil(seen[name], name .. " has cases, and need not be tested elsewhere")
      seen[name] = true
    end
  end
  local missing = {}
  for name in pairs(names) do
    if not seen[name] then missing[#missing + 1] = name end
  end
  table.sort(missing)
  lu.assertEquals(missing, {})
end

os.exit(lu.LuaUnit.run())
