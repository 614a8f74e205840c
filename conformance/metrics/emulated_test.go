// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/conformance/release"
)

// emulatedEnv makes this test binary print upstream's metrics under its flags, separated by blanks. Upstream registers
// its metrics once in a process, by the gates of that moment.
const emulatedEnv = "KUMIKI_TEST_METRICS_EMULATED"

// process is what release.Emulate needs of a test.
type process struct{}

func (process) Helper()          {}
func (process) Cleanup(func())   {}
func (process) Fatal(why ...any) { panic(fmt.Sprint(why...)) }

func TestMain(m *testing.M) {
	flags := os.Getenv(emulatedEnv)
	if flags == "" {
		os.Exit(m.Run())
	}
	release.Emulate(process{}, strings.Fields(flags)...)
	all, err := Upstream()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// emulatedUpstream returns what kube-scheduler registers when it is started with these flags.
func emulatedUpstream(flags string) ([]Metric, error) {
	c := exec.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), emulatedEnv+"="+flags), os.Stderr
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("upstream's metrics with %s: %w", flags, err)
	}
	var all []Metric
	return all, json.Unmarshal(text, &all)
}

// TestEveryMetricOfAnEmulatedVersionIsHere: kumiki registers the same metrics whatever version is emulated. Each that
// kube-scheduler registers under the version is among them and equal. Others are those of gates that the version turns
// off; there they keep the value 0 or no series.
func TestEveryMetricOfAnEmulatedVersionIsHere(t *testing.T) {
	for flags, off := range map[string][]string{
		"--emulated-version=1.37": nil,
		"--emulated-version=1.36": nil,
		"--emulated-version=1.37 --feature-gates=SchedulerAsyncPreemption=false": {
			"scheduler_preemption_goroutines_duration_seconds", "scheduler_preemption_goroutines_execution_total"},
	} {
		t.Run(flags, func(t *testing.T) {
			theirs := byName(t, func() ([]Metric, error) { return emulatedUpstream(flags) })
			ours := byName(t, Kumiki)
			for name, want := range theirs {
				if got, there := ours[name]; !there {
					t.Errorf("%s is not here", name)
				} else if got != want {
					t.Errorf("%s differs:\n  here:     %+v\n  upstream: %+v", name, got, want)
				}
			}
			for name := range ours {
				if _, there := theirs[name]; !there && !strings.HasPrefix(name, "kumiki_") {
					off = remove(t, off, name)
				}
			}
			if len(off) > 0 {
				t.Errorf("upstream has these metrics, too: %q", off)
			}
		})
	}
}

// remove takes a name from a list. A name that is not in it is an error of the test.
func remove(t *testing.T, list []string, name string) (rest []string) {
	t.Helper()
	for _, is := range list {
		if is != name {
			rest = append(rest, is)
		}
	}
	if len(rest) == len(list) {
		t.Errorf("%s is here, and upstream does not have it", name)
	}
	return rest
}
