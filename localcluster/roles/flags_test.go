// SPDX-License-Identifier: Apache-2.0

package roles

import (
	"slices"
	"strings"
	"testing"
)

// Catches: a choice of controllers that adds to those that run otherwise, as a flag of a list does that is given twice.
func TestChosenControllersAreAll(t *testing.T) {
	chosen := func(s Settings) []string {
		return slices.DeleteFunc(ControllersArgs(s), func(arg string) bool { return !strings.HasPrefix(arg, "--controllers=") })
	}
	if got := chosen(Settings{}); len(got) != 1 || !strings.Contains(got[0], "deployment-controller") {
		t.Errorf("without a choice: %v", got)
	}
	if got := chosen(Settings{ControllersArgs: []string{"--v=1", "--controllers=a,b"}}); !slices.Equal(got, []string{"--controllers=a,b"}) {
		t.Errorf("with a choice: %v", got)
	}
}
