// SPDX-License-Identifier: Apache-2.0

//go:build controllersoff

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestScenariosNeedTheirControllers: a scenario fails if one of its controllers is off, and for no other reason than
// that something does not happen; so a controller that does nothing does not pass TestControllers. Without some of them
// the cluster itself does not get ready.
func TestScenariosNeedTheirControllers(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		for _, name := range s.controllers {
			t.Run(name+"/"+s.name, func(t *testing.T) {
				// A scenario that passes ends earlier than this in nearly all cases: a cron job waits for the minute, and
				// the last one for the quarantine of a node.
				patience := 25 * time.Second
				switch {
				case name == "cronjob-controller":
					patience = 90 * time.Second
				case s.name == lastScenario:
					patience = 150 * time.Second
				}
				out := runWithout(t, program, s.name, name, patience)
				if !strings.Contains(out, "--- FAIL: TestControllers") {
					t.Errorf("it does not fail:\n%s", out)
				}
				t.Log(reasonOf(out))
			})
		}
	}
}

// runWithout runs a scenario in a cluster without one controller, and returns the output.
func runWithout(t *testing.T, program, scenario, controller string, patience time.Duration) string {
	t.Helper()
	pattern := "^TestControllers$/^side_by_side$/^" + regexp.QuoteMeta(strings.ReplaceAll(scenario, " ", "_")) + "$"
	if scenario == lastScenario {
		pattern = "^TestControllers$/^" + regexp.QuoteMeta(strings.ReplaceAll(scenario, " ", "_")) + "$"
	}
	cmd := exec.Command(program, "-test.run", pattern, "-test.v", "-without", controller, "-patience", patience.String())
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("the scenario passes without %s:\n%s", controller, out)
	}
	return string(out)
}

// reasonOf returns the first line that a test printed.
func reasonOf(out string) string {
	return strings.TrimSpace(regexp.MustCompile(`(?m)^ +\S+_test\.go:\d+: .*`).FindString(out))
}
