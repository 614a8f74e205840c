// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// faultEnv names the fault that a test process is to run with.
const faultEnv = "KUMIKI_MUTANT"

// Main is the TestMain of a package whose faults are tried in processes of their own: in such a process it puts the fault
// in before the tests run.
func Main(m *testing.M, set func(fault int) (restore func())) {
	if fault := os.Getenv(faultEnv); fault != "" {
		n, err := strconv.Atoi(fault)
		if err != nil {
			panic(err)
		}
		set(n)
	}
	os.Exit(m.Run())
}

// InFault tells whether this process is one of those that Seen starts.
func InFault() bool { return os.Getenv(faultEnv) != "" }

var failedTest = regexp.MustCompile(`--- FAIL: (\S+)`)

// Seen runs the tests of the package with a fault put in, and demands that one of them fails. breaks says what the fault
// does.
func Seen(t *testing.T, fault int, breaks string) {
	t.Helper()
	SeenBy(t, fault, breaks, "^Test")
}

// SeenBy is Seen for a package whose tests are not all quick: only those are run whose names match a regexp.
func SeenBy(t *testing.T, fault int, breaks, tests string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+tests, "-test.failfast", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	cmd.Env = append(os.Environ(), faultEnv+"="+strconv.Itoa(fault))
	out, err := cmd.CombinedOutput()
	caught := failedTest.FindSubmatch(out)
	if err == nil || caught == nil {
		t.Fatalf("no test sees that %s: %v\n%s", breaks, err, out)
	}
	t.Logf("%s: caught by %s", breaks, caught[1])
}
