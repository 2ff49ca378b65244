-- What the file formats share: how each names the ten dtypes, and how messages show what is there.
local _, internal = ...

local M = {}

-- `npy` is NumPy's kind and size, which has no bfloat16; `pack` is string.pack's format.
M.DTYPES = {
  {name = "float64", size = 8, npy = "f8", safetensors = "F64", pack = "d"},
  {name = "float32", size = 4, npy = "f4", safetensors = "F32", pack = "f"},
  {name = "float16", size = 2, npy = "f2", safetensors = "F16"},
  {name = "bfloat16", size = 2, safetensors = "BF16"},
  {name = "int64", size = 8, npy = "i8", safetensors = "I64", pack = "i8"},
  {name = "int32", size = 4, npy = "i4", safetensors = "I32", pack = "i4"},
  {name = "int16", size = 2, npy = "i2", safetensors = "I16", pack = "i2"},
  {name = "int8", size = 1, npy = "i1", safetensors = "I8", pack = "i1"},
  {name = "uint8", size = 1, npy = "u1", safetensors = "U8", pack = "I1"},
  {name = "bool", size = 1, npy = "b1", safetensors = "BOOL", pack = "I1"},
}

-- Rows by one of their fields.
function M.by(field)
  local rows = {}
  for _, row in ipairs(M.DTYPES) do
    if row[field] then rows[row[field]] = row end
  end
  return rows
end

-- Text from a file or a script as a message can have it: in quotes, on one line, not too long.
function M.quote(text)
  if #text > 60 then text = text:sub(1, 40) .. "..." .. text:sub(-17) end
  return "'" .. text:gsub(utf8.len(text) and "%c" or "[^ -~]", "?") .. "'"
end

-- Any value in a message.
function M.describe(value)
  local kind = type(value)
  if kind == "string" then return M.quote(value) end
  return (kind == "number" or kind == "boolean") and tostring(value) or kind
end

-- The reader's file has elements of this dtype.
function M.check_dtype(reader, name)
  if not internal.dtype_size(name) then
    reader:fail(("holds %s, a dtype that this build does not have"):format(name))
  end
end

return M
