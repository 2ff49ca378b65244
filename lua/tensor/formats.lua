-- Reading by format, from a file or from bytes: one path for both.
local _, internal = ...

local M = {}

local FORMATS = {
  npy = internal.require "tensor.npy",
  npz = internal.require "tensor.npz",
  safetensors = internal.require "tensor.safetensors",
  csv = internal.require "tensor.csv",
}

-- What a reader's bytes hold; `prefix` begins the messages.
function M.read(format, reader, prefix, options)
  return FORMATS[format].read(reader, prefix, options or {})
end

-- The same for a string: for what is small, and for tests.
function M.parse(format, bytes, options)
  local prefix = "load: 'bytes'"
  local reader <close> = internal.open_string(prefix, bytes)
  return M.read(format, reader, prefix, options)
end

return M
