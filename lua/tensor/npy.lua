-- NumPy's .npy: a magic, a version, and the text of a Python dictionary with three keys, which is
-- parsed here by hand, so that nothing that a file says is ever executed; then the elements.
local _, internal = ...
local codec = internal.require "tensor.codec"
local quote = codec.quote

local M = {}

local MAGIC = "\x93NUMPY"
local LONGEST_HEADER = 65536 -- more than any tensor needs
local ALIGNMENT = 64

-- Numbers of one byte have no order.
local function is_big(order)
  return order == ">" or order == "=" and string.pack("=I2", 1) == "\0\1"
end

local BY_NPY, BY_NAME = codec.by "npy", codec.by "name"

-- ---- the dictionary ----

-- Each gives a value and the place behind it, or nothing where the text is something else.
local function parse_string(text, at)
  local quoted, behind = text:match("^'([^'\\%c]*)'()", at)
  if not quoted then quoted, behind = text:match('^"([^"\\%c]*)"()', at) end
  return quoted, behind
end

local function parse_boolean(text, at)
  local word, behind = text:match("^(%a+)()", at)
  if word == "True" or word == "False" then return word == "True", behind end
end

-- Python 2 wrote an L behind some integers.
local function parse_sizes(text, at)
  at = text:match("^%(%s*()", at)
  local sizes = {}
  while at do
    local behind = text:match("^%)()", at)
    if behind then return sizes, behind end
    local digits, comma
    digits, at = text:match("^(%d+)L?%s*()", at)
    if not digits or #digits > 18 then return nil end
    sizes[#sizes + 1] = math.tointeger(tonumber(digits))
    comma, at = text:match("^(,?)%s*()", at)
    -- (3) is a number in parentheses, and no tuple
    if comma == "" and (#sizes == 1 or text:sub(at, at) ~= ")") then return nil end
  end
end

local KEYS = {"descr", "fortran_order", "shape"}
local PARSERS = {descr = parse_string, fortran_order = parse_boolean, shape = parse_sizes}

-- Why the value of `descr` is no string, when it could be worse than damaged.
local function refuse_value(reader, key, text, at)
  if key == "descr" and text:find("^%[", at) then
    reader:fail "holds records, which no tensor can"
  end
  reader:fail(("is damaged: its header has a strange '%s'"):format(key))
end

local function parse_header(reader, text)
  local fields, at = {}, text:match "^%s*{%s*()"
  while at and not text:find("^}", at) do
    local key
    key, at = parse_string(text, at)
    at = at and text:match("^%s*:%s*()", at)
    if not at then break end
    local parse = PARSERS[key]
    if not parse then reader:fail(("is damaged: %s is no key of a header"):format(quote(key))) end
    if fields[key] ~= nil then reader:fail(("is damaged: its header has two '%s'"):format(key)) end
    local value, behind = parse(text, at)
    if value == nil then refuse_value(reader, key, text, at) end
    fields[key] = value
    at = text:match("^%s*,%s*()", behind) or text:match("^%s*()}", behind)
  end
  if not at or not text:find("^}%s*$", at) then
    reader:fail "is damaged: its header is no dictionary of Python's"
  end
  for _, key in ipairs(KEYS) do
    if fields[key] == nil then reader:fail(("is damaged: its header has no '%s'"):format(key)) end
  end
  return fields
end

-- The dtype's name, and whether the numbers are big-endian.
local function parse_dtype(reader, descr)
  local order, kind = descr:match "^([<>=|]?)(%a%d*)$"
  local row = BY_NPY[kind]
  if kind and kind:find "^O" then
    reader:fail "holds pickled Python objects, which are never loaded"
  elseif not row then
    reader:fail(("holds NumPy's %s, which is no dtype of tensors"):format(quote(descr)))
  elseif order == "|" and row.size > 1 then
    reader:fail(("is damaged: its dtype %s has no byte order"):format(quote(descr)))
  end
  codec.check_dtype(reader, row.name)
  return row.name, is_big(order == "" and "=" or order)
end

-- ---- reading and writing ----

-- A view with the dimensions in reverse.
local function reverse(x)
  local ndim = x.ndim
  for d = 1, ndim // 2 do x = x:transpose(d, ndim + 1 - d) end
  return x
end

local function reverse_list(list)
  local reversed = {}
  for i = #list, 1, -1 do reversed[#reversed + 1] = list[i] end
  return reversed
end

function M.read(reader)
  local magic, major, minor = reader:read(8, "its beginning"):match "^(......)(.)(.)$"
  if magic ~= MAGIC then reader:fail "is no .npy file: it does not begin as one" end
  major, minor = major:byte(), minor:byte()
  if major < 1 or major > 3 or minor ~= 0 then
    reader:fail(("is of version %d.%d, and versions 1.0 to 3.0 are known"):format(major, minor))
  end
  local format = major == 1 and "<I2" or "<I4"
  local length = string.unpack(format, reader:read(string.packsize(format), "the header's length"))
  if length > LONGEST_HEADER then
    reader:fail(("is damaged: a header of %d bytes is too long"):format(length))
  end
  local header = parse_header(reader, reader:read(length, "its header"))
  local dtype, big = parse_dtype(reader, header.descr)
  local x
  if header.fortran_order then
    x = reverse(reader:tensor(dtype, big, reverse_list(header.shape)))
  else
    x = reader:tensor(dtype, big, header.shape)
  end
  return x, reader:leave()
end

-- `prefix` begins the message.
function M.check(prefix, x)
  if not BY_NAME[x.dtype].npy then
    internal.fail(("%s cannot hold %s, which NumPy does not have: save it as .safetensors")
                  :format(prefix, x.dtype))
  end
end

-- A tensor that lies by columns in memory is written as it lies.
function M.write(writer, x)
  local by_columns = not x:is_contiguous() and reverse(x):is_contiguous()
  local row, shape = BY_NAME[x.dtype], x.shape
  local sizes = table.concat(shape, ", ") .. (#shape == 1 and "," or "")
  local header = ("{'descr': '%s%s', 'fortran_order': %s, 'shape': (%s), }"):format(
    row.size > 1 and "<" or "|", row.npy, by_columns and "True" or "False", sizes)
  local padding = -(#MAGIC + 4 + #header + 1) % ALIGNMENT
  writer:write(MAGIC .. "\1\0" .. string.pack("<s2", header .. (" "):rep(padding) .. "\n"))
  writer:tensor(by_columns and reverse(x) or x)
end

return M
