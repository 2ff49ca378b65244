-- einsum: a sum of products over labelled dimensions.
--
-- Each operand becomes a term {x =, labels =}: a view with one dimension for each label, in which a
-- label that it had twice is the diagonal.  The terms are multiplied from left to right; a label is
-- summed as soon as neither the result nor a later term has it, in a matrix product where both
-- factors have it.  The dimensions that `...` stands for have labels of their own, "..1" to "..n",
-- counted from the right.
local _, internal = ...
local check, regroup = internal.check, internal.linalg.regroup
local arguments = internal.require "tensor.arguments"
local fail, size_text = arguments.fail, arguments.size_text

-- ---- reading the formula ----

-- The letters of one operand or of the result, with "..." among them.
local function split_labels(formula, text)
  local labels, at = {}, 1
  while at <= #text do
    local label = text:match("^%.%.%.", at) or text:match("^%a", at)
    if not label then
      fail("einsum: '%s' of '%s' is neither a letter nor '...'", text:sub(at, at), formula)
    end
    labels[#labels + 1] = label
    at = at + #label
  end
  if #table.concat(labels):gsub("%a", "") > 3 then
    fail("einsum: '%s' has '...' twice for one operand", formula)
  end
  return labels
end

-- Lists of labels for the operands; and for the result, or nil.
local function parse(formula)
  local text = formula:gsub("%s", "")
  local left, right = text:match "^(.-)%->(.*)$"
  local inputs = {}
  for input in ((left or text) .. ","):gmatch "(.-)," do
    inputs[#inputs + 1] = split_labels(formula, input)
  end
  return inputs, right and split_labels(formula, right)
end

-- "..." in a list of labels as `count` of them.
local function spread(labels, count)
  local list = {}
  for _, label in ipairs(labels) do
    if label == "..." then
      for i = count, 1, -1 do list[#list + 1] = ".." .. i end
    else
      list[#list + 1] = label
    end
  end
  return list
end

local function without_ellipsis(labels)
  local count = 0
  for _, label in ipairs(labels) do count = count + (label == "..." and 0 or 1) end
  return count, count < #labels
end

-- Gives every dimension of the operand its label.
local function label_dims(formula, number, labels, x)
  local letters, has_ellipsis = without_ellipsis(labels)
  local rest = x.ndim - letters
  if rest < 0 or (rest > 0 and not has_ellipsis) then
    fail("einsum: '%s' has %d labels for operand %d, whose size is %s", formula, letters, number,
         size_text(x))
  end
  return spread(labels, rest), rest
end

-- Without "->": what "..." stands for, then the letters that occur once, in alphabetical order.
local function implicit_output(inputs, ellipsis)
  local count, letters = {}, {}
  for _, labels in ipairs(inputs) do
    for _, label in ipairs(labels) do
      if label ~= "..." then count[label] = (count[label] or 0) + 1 end
    end
  end
  for label, times in pairs(count) do
    if times == 1 then letters[#letters + 1] = label end
  end
  table.sort(letters)
  return table.move(letters, 1, #letters, ellipsis + 1, spread({"..."}, ellipsis))
end

-- ---- terms ----

-- The sizes of labels; a size of 1 broadcasts.
local function collect_sizes(labelled, operands)
  local sizes, owner = {}, {}
  for number, labels in ipairs(labelled) do
    local shape = operands[number].shape
    for d, label in ipairs(labels) do
      local size = shape[d]
      if (sizes[label] or 1) == 1 then
        sizes[label], owner[label] = size, number
      elseif size ~= 1 and size ~= sizes[label] then
        local what = label:find("%a") and "'" .. label .. "'" or "a dimension of '...'"
        fail("einsum: %s is %d in operand %d, and %d in operand %d", what, sizes[label],
             owner[label], size, number)
      end
    end
  end
  return sizes
end

-- A dimension of size 1 whose label is larger elsewhere is left out: it repeats in any case.
local function make_term(x, labels, sizes)
  local shape, dims, list, groups = x.shape, {}, {}, {}
  for d, label in ipairs(labels) do
    if shape[d] == sizes[label] then
      if not dims[label] then
        dims[label] = {}
        list[#list + 1] = label
      end
      table.insert(dims[label], d)
    end
  end
  for i, label in ipairs(list) do groups[i] = dims[label] end
  return {x = regroup(x, groups), labels = list}
end

local function index_of(list)
  local index = {}
  for i, item in ipairs(list) do index[item] = i end
  return index
end

-- The term's tensor with these labels for dimensions, of size 1 where it has none.
local function arrange(term, labels)
  local index, groups = index_of(term.labels), {}
  for i, label in ipairs(labels) do groups[i] = index[label] and {index[label]} or {} end
  return regroup(term.x, groups)
end

-- Sums a term over the labels that neither are wanted nor another term has.
local function reduce(term, wanted, other)
  local x, kept = term.x, {}
  for d = #term.labels, 1, -1 do
    local label = term.labels[d]
    if wanted[label] or other[label] then
      table.insert(kept, 1, label)
    else
      x = x:sum(d)
    end
  end
  return {x = x, labels = kept}
end

local function join(...)
  local list = {}
  for _, labels in ipairs {...} do table.move(labels, 1, #labels, #list + 1, list) end
  return list
end

local function product_of_sizes(labels, sizes)
  local count = 1
  for _, label in ipairs(labels) do count = count * sizes[label] end
  return count
end

-- Labels of two terms: that both have and are wanted, that both have and are summed, that one has.
local function classify(a, b, wanted)
  local in_a, in_b = index_of(a.labels), index_of(b.labels)
  local batch, inner, left, right = {}, {}, {}, {}
  for _, label in ipairs(a.labels) do
    local list = not in_b[label] and left or wanted[label] and batch or inner
    list[#list + 1] = label
  end
  for _, label in ipairs(b.labels) do
    if not in_a[label] then right[#right + 1] = label end
  end
  return batch, inner, left, right
end

local function multiply(a, b, wanted, sizes)
  a = reduce(a, wanted, index_of(b.labels))
  b = reduce(b, wanted, index_of(a.labels))
  local batch, inner, left, right = classify(a, b, wanted)
  local labels = join(batch, left, right)
  if #inner == 0 then return {x = arrange(a, labels) * arrange(b, labels), labels = labels} end
  local n, m = product_of_sizes(left, sizes), product_of_sizes(right, sizes)
  local k, count = product_of_sizes(inner, sizes), product_of_sizes(batch, sizes)
  local x, y = arrange(a, join(batch, left, inner)), arrange(b, join(batch, inner, right))
  local product
  if #batch == 0 then
    product = x:reshape(n, k):mm(y:reshape(k, m))
  else
    product = x:reshape(count, n, k):bmm(y:reshape(count, k, m))
  end
  local shape = {}
  for i, label in ipairs(labels) do shape[i] = sizes[label] end
  return {x = product:reshape(shape), labels = labels}
end

-- ---- the function ----

-- The operands, which may be in a table.
local function check_operands(formula, ...)
  if type(formula) ~= "string" then
    fail("einsum: the formula must be a string, not %s", type(formula))
  end
  local given, count = {...}, select("#", ...)
  if count == 1 and type(given[1]) == "table" then
    given = given[1]
    count = rawlen(given)
  end
  if count == 0 then fail "einsum: wants tensors after the formula" end
  local operands = {}
  for number = 1, count do
    local x = rawget(given, number)
    if type(x) ~= "userdata" then
      fail("einsum: operand %d must be a tensor, not %s", number, type(x))
    end
    check("einsum", x)
    operands[number] = x
    if x.dtype ~= operands[1].dtype then
      fail("einsum: operands 1 and %d are %s and %s: convert one with :to()", number,
           operands[1].dtype, x.dtype)
    end
  end
  return operands
end

local function check_output(formula, output, sizes)
  local seen = {}
  for _, label in ipairs(output) do
    if seen[label] then fail("einsum: '%s' gives '%s' twice", formula, label) end
    if not sizes[label] then
      fail("einsum: '%s' gives '%s', which no operand has", formula, label)
    end
    seen[label] = true
  end
end

local function einsum(formula, ...)
  local operands = check_operands(formula, ...)
  local inputs, output = parse(formula)
  if #inputs ~= #operands then
    fail("einsum: '%s' is for %d operands, not %d", formula, #inputs, #operands)
  end
  local labelled, ellipsis = {}, 0
  for number, labels in ipairs(inputs) do
    local rest
    labelled[number], rest = label_dims(formula, number, labels, operands[number])
    ellipsis = math.max(ellipsis, rest)
  end
  output = output and spread(output, ellipsis) or implicit_output(inputs, ellipsis)
  local sizes = collect_sizes(labelled, operands)
  check_output(formula, output, sizes)

  local terms = {}
  for number, x in ipairs(operands) do terms[number] = make_term(x, labelled[number], sizes) end
  local result = terms[1]
  for number = 2, #terms do
    local wanted = index_of(output)
    for later = number + 1, #terms do
      for _, label in ipairs(terms[later].labels) do wanted[label] = true end
    end
    result = multiply(result, terms[number], wanted, sizes)
  end
  result = reduce(result, index_of(output), {})
  return arrange(result, output)
end

return {
  {"einsum", einsum, method = false,
   doc = "einsum(formula, x, ...): a sum of products over labelled dimensions, as in 'ij,jk->ik'",
   example = "tensor.einsum('ii->i', tensor{{1, 2}, {3, 4}})", value = "tensor([1., 4.])"},
}
