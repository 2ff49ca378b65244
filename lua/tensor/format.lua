-- How a tensor prints: the text of PyTorch 1.13, to the letter.
--
-- One rule chosen from the values decides how all of them are written, the widest decides the
-- column, and lines break where the columns fill `linewidth`. A tensor with more elements than
-- `threshold` is summarised: only its edges are read, so its size costs nothing.

local _, internal = ...
local M = {}

-- The print options, read at every call. `sci_mode`: true, false, or nil for PyTorch's choice.
M.options = {precision = 4, threshold = 1000, edgeitems = 3, linewidth = 80, sci_mode = nil}

local DEFAULT = "float32" -- goes without saying

-- Dtypes that a reader infers from the values, so not where there are none.
local INFERRED = {int64 = true, bool = true}

local PREFIX = "tensor("

-- Appends the leaves of nested tables (or the one number of a 0-dimensional tensor) to `list`.
local function flatten(value, list)
  if type(value) ~= "table" then
    list[#list + 1] = value
    return list
  end
  for i = 1, #value do flatten(value[i], list) end
  return list
end

-- Joins the nested table `b` to `a` along dimension `dim`, in place.
local function join(a, b, dim)
  if dim == 1 then
    table.move(b, 1, #b, #a + 1, a)
  else
    for i = 1, #a do join(a[i], b[i], dim - 1) end
  end
  return a
end

-- The first and last `edge` of every dimension that has more than both together, as nested
-- tables: one read for each corner, so nothing between the edges is touched.
local function read_edges(t, shape, edge)
  local ranges = {}
  local function read(dim)
    if dim > #shape then return t[ranges]:totable() end
    ranges[dim] = {}
    if shape[dim] <= 2 * edge then return read(dim + 1) end
    ranges[dim] = {1, edge}
    local first = read(dim + 1)
    ranges[dim] = {-edge, -1}
    return join(first, read(dim + 1), dim)
  end
  return read(1)
end

-- How floats may be written. Whole ones end in a bare point, which tells them from integers;
-- nan has no sign, whatever its bits say.
local function float_writers(precision)
  local fixed, scientific = "%." .. precision .. "f", "%." .. precision .. "e"
  local function writer(finite_spec)
    return function(x)
      if x ~= x then return "nan" end
      if x == math.huge then return "inf" end
      if x == -math.huge then return "-inf" end
      return finite_spec:format(x)
    end
  end
  return {whole = writer("%.0f."), fixed = writer(fixed), scientific = writer(scientific)}
end

-- Writer and column width for floats. Zeros and non-finite values have no say in either. The
-- scientific form is for what four decimals would show badly: magnitudes more than 1000 apart,
-- above 1e8 or below 1e-4.
local function choose_float(values, options)
  local writers = float_writers(options.precision)
  local counted, least, most, whole = {}, math.huge, 0, true
  for _, x in ipairs(values) do
    local magnitude = x < 0 and -x or x
    if magnitude > 0 and magnitude < math.huge then
      counted[#counted + 1] = x
      if magnitude < least then least = magnitude end
      if magnitude > most then most = magnitude end
      whole = whole and x % 1 == 0
    end
  end
  if #counted == 0 then return writers.whole, 1 end -- not even sci_mode = true changes this

  local plain = whole and "whole" or "fixed"
  local wide = most / least > 1000 or most > 1e8 or least < 1e-4
  local write, width = writers[wide and "scientific" or plain], 1
  for _, x in ipairs(counted) do width = math.max(width, #write(x)) end
  -- PyTorch measures the column before it looks at sci_mode, so a forced form keeps the width
  -- of the form that it replaces.
  if options.sci_mode ~= nil then write = writers[options.sci_mode and "scientific" or plain] end
  return write, width
end

-- Writer and column width for integers and booleans: the longest value.
local function choose_exact(values, dtype)
  local write
  if dtype == "bool" then
    write = function(x) return x and "True" or "False" end
  else
    write = function(x) return ("%d"):format(x) end
  end
  local width = 1
  for _, x in ipairs(values) do width = math.max(width, #write(x)) end
  return write, width
end

-- `items` in brackets, broken into lines of as many as fit, at least one. An item counts for its
-- column and the ", " after it; the closing brackets count for nothing.
local function lay_row(items, width, indent, linewidth)
  local per_line = math.max(1, (linewidth - indent) // (width + 2))
  local parts, in_line = {"[", items[1]}, 1
  for i = 2, #items do
    if in_line < per_line then
      parts[#parts + 1], in_line = ", ", in_line + 1
    else
      parts[#parts + 1], in_line = ",\n" .. (" "):rep(indent + 1), 1
    end
    parts[#parts + 1] = items[i]
  end
  parts[#parts + 1] = "]"
  return table.concat(parts)
end

-- The values of a tensor that has some, in brackets. An inner bracket stands one column further
-- in, and blank lines between blocks grow with the dimensions that the blocks have.
local function lay_values(t, shape, indent, options)
  local edge, linewidth = options.edgeitems, options.linewidth
  local summarise = #shape > 0 and t:numel() > options.threshold
  if summarise and edge == 0 then return "[...]" end -- as later versions; 1.13 fails here

  local values = flatten(summarise and read_edges(t, shape, edge) or t:totable(), {})
  local write, width
  if internal.compute(t.dtype) ~= "int64" then
    write, width = choose_float(values, options)
  else
    write, width = choose_exact(values, t.dtype)
  end

  local next_value = 0
  local function lay(dim, column)
    if dim > #shape then
      next_value = next_value + 1
      local text = write(values[next_value])
      return (" "):rep(width - #text) .. text
    end
    local innermost = dim == #shape
    local cut = summarise and shape[dim] > 2 * edge
    local items = {}
    for i = 1, cut and 2 * edge or shape[dim] do
      if cut and i == edge + 1 then items[i] = innermost and " ..." or "..." end
      items[#items + 1] = lay(dim + 1, column + 1)
    end
    if innermost then return lay_row(items, width, column, linewidth) end
    local between = "," .. ("\n"):rep(#shape - dim) .. (" "):rep(column + 1)
    return "[" .. table.concat(items, between) .. "]"
  end
  return lay(1, indent)
end

-- What follows the values, in order, each as {text, length in PyTorch}.
local function suffixes(t, shape)
  local list = {}
  local function add(text, length) list[#list + 1] = {text, length or #text} end
  if t.device ~= "cpu" then add(("device='%s'"):format(t.device)) end
  local empty = t:numel() == 0
  if empty and #shape ~= 1 then add("size=(" .. table.concat(shape, ", ") .. ")") end
  if t.dtype ~= DEFAULT and (empty or not INFERRED[t.dtype]) then
    -- Lines break where they do with PyTorch's longer `dtype=torch.float64`.
    add(("dtype='%s'"):format(t.dtype), #"dtype=torch." + #t.dtype)
  end
  return list
end

-- The text that print(t) shows. It waits for the values that it shows, and raises their error.
function M.format(t)
  local shape, options = t.shape, M.options
  local body = t:numel() == 0 and "[]" or lay_values(t, shape, #PREFIX, options)
  local parts = {PREFIX, body}
  -- PyTorch counts the last line of the values as two longer than it is.
  local length = #(body:match(".*\n(.*)") or PREFIX .. body) + 2
  for _, suffix in ipairs(suffixes(t, shape)) do
    local text, cost = suffix[1], suffix[2]
    if length + cost + 2 > options.linewidth then
      parts[#parts + 1] = ",\n" .. (" "):rep(#PREFIX)
      length = #PREFIX + cost
    else
      parts[#parts + 1] = ", "
      length = length + cost + 2
    end
    parts[#parts + 1] = text
  end
  parts[#parts + 1] = ")"
  return table.concat(parts)
end

return M
