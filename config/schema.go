// SPDX-License-Identifier: Apache-2.0

package config

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema is a JSON schema (draft 7) of configuration files, for editors. conformance/config generates it from
// upstream's types and ours.
func Schema() []byte { return schema }
