// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// TestWhyOfAFile: a profile in which nothing waited is not known, with the reason, in each format; what is missing is
// said.
func TestWhyOfAFile(t *testing.T) {
	endpoint, ca := profiled(t, nil)
	name, _ := recordOf(t, "https://"+endpoint, "--scheduler-ca", ca)
	code, out, errs := command(t, "kumiki", "profile", "why", name)
	for _, want := range []string{"Bottleneck:  ", "Waiting: ", "Not observed:", "  api-latency: asking the API server"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
	var v bottleneck.Verdict
	code, out, errs = command(t, "kumiki", "profile", "why", name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || v.Seconds < 0.5 {
		t.Errorf("code %d, %+v, error %v\n%s", code, v, err, errs)
	}
	code, _, errs = command(t, "kumiki", "profile", "why", "--seconds", "0")
	if code != 2 || !strings.Contains(errs, "--seconds must be from 1") {
		t.Errorf("code %d, errors %q", code, errs)
	}
	if code, _, errs = command(t, "kumiki", "profile", "why", ca); code != 1 || !strings.Contains(errs, "not a bundle") {
		t.Errorf("a file that is no profile: code %d, errors %q", code, errs)
	}
}
