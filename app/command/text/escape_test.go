// SPDX-License-Identifier: Apache-2.0

package text

import (
	"encoding/json"
	"testing"
)

// TestEscapeJSON: what a terminal may obey is escaped, and a reader gets the same value.
func TestEscapeJSON(t *testing.T) {
	const hostile = "a\u009b31mb\u007f\u202e\U000e0041\u00e9\u00a0\x1b"
	plain, err := json.MarshalIndent(map[string]string{"name": hostile}, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	if Prints(plain) {
		t.Errorf("%q is taken for printable", plain)
	}
	text := EscapeJSON(plain)
	if !Prints([]byte(text)) {
		t.Errorf("not everything is escaped: %q", text)
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(text), &back); err != nil || back["name"] != hostile {
		t.Errorf("read back as %q, error %v", back["name"], err)
	}
	const usual = "{\n    \"name\": \"caf\u00e9\"\n}"
	if got := EscapeJSON([]byte(usual)); got != usual || !Prints([]byte(usual)) {
		t.Errorf("printable text became %q", got)
	}
}
