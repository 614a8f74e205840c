// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestReleases: the options name the release, then the environment does, and a release that cannot be built is an
// error that names those that can.
func TestReleases(t *testing.T) {
	for _, c := range []struct {
		options Release
		env     string
		want    Release
		problem string
	}{
		{want: Matched},
		{env: "1.36", want: Previous},
		{options: Matched, env: "1.36", want: Matched},
		{options: Previous, want: Previous},
		{options: "1.20", problem: `no Kubernetes "1.20", only 1.37 and 1.36`},
		{env: "v1.36.4", problem: ReleaseEnv},
	} {
		t.Setenv(ReleaseEnv, c.env)
		got, err := c.options.orDefault()
		said := fmt.Sprint(err)
		if got != c.want || (err != nil) != (c.problem != "") || !strings.Contains(said, c.problem) {
			t.Errorf("options %q, environment %q: %q, %v", c.options, c.env, got, err)
		}
	}
	if Matched.binary() == Previous.binary() || len(Matched.buildFlags()) != 0 {
		t.Error("two releases are built into one program, or the matched one is not what is built without flags")
	}
	if got := Previous.buildFlags(); !slices.Equal(got, []string{"-modfile=go-1.36.mod", "-tags=previous"}) {
		t.Errorf("the previous release is built with %q", got)
	}
}
