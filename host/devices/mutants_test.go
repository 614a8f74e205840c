// SPDX-License-Identifier: Apache-2.0

//go:build kumiki_mutants

package devices

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// seedEnv names the mutant that a test process is to run with.
const seedEnv = "KUMIKI_DEVICES_MUTANT"

func TestMain(m *testing.M) {
	if seed := os.Getenv(seedEnv); seed != "" {
		n, err := strconv.Atoi(seed)
		if err != nil {
			panic(err)
		}
		SetMutant(n)
	}
	os.Exit(m.Run())
}

var failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)

// The tests of this package fail with any one of the mutants in place.
func TestMutants(t *testing.T) {
	if os.Getenv(seedEnv) != "" {
		return // this process is one of those below
	}
	for n, m := range Mutants {
		t.Run(m.Name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^Test", "-test.failfast", "-rapid.nofailfile", "-rapid.shrinktime=0s")
			cmd.Env = append(os.Environ(), seedEnv+"="+strconv.Itoa(n))
			out, err := cmd.CombinedOutput()
			caught := failedTest.FindSubmatch(out)
			if err == nil || caught == nil {
				t.Fatalf("no test sees that %s: %v\n%s", m.Breaks, err, out)
			}
			t.Logf("%s: caught by %s", m.Breaks, caught[1])
		})
	}
}
