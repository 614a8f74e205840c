// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestRawArgs: what a plugin finds wrong with its arguments is an error with line, column and field.
func TestRawArgs(t *testing.T) {
	for said, want := range map[string]string{
		"": "",
		`strict decoding error: unknown field "labl", unknown field "deep.down"`: "2 problems\n" +
			"  line 7, column 7: profiles[0].pluginConfig[0].args.labl: unknown field\n" +
			"  line 9, column 9: profiles[0].pluginConfig[0].args.deep.down: unknown field",
		"json: cannot unmarshal string into Go struct field Args.labl of type int32": "line 7, column 7: " +
			"profiles[0].pluginConfig[0].args.labl: json: cannot",
		"too many": "line 6, column 5: profiles[0].pluginConfig[0].args: too many",
	} {
		c, err := NewCatalog(Custom{Name: "A", Points: []Point{Filter}, RawArgs: true,
			CheckArgs: func(json.RawMessage) error {
				if said == "" {
					return nil
				}
				return errors.New(said)
			}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Parse([]byte(head + "profiles:\n- pluginConfig:\n  - name: A\n    args:\n      labl: x\n      deep:\n" +
			"        down: y\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", said, err, want)
		}
	}
}
