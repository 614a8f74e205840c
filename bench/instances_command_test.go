// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Each wrong flag of bench instances is a mistake on the command line whose message names it, and nothing runs.
func TestInstancesWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                         "--virtual is required",
		"--virtual --instances 0":  "0 instances: there can be 1 to 64",
		"--virtual --instances 65": "65 instances",
		"--virtual --nodes 3 --pods 30 --instances 4":             "3 nodes for 4 instances",
		"--virtual --nodes 0":                                     "--nodes 0",
		"--virtual --pods -1":                                     "--pods -1",
		"--virtual --mode=":                                       "--mode: at least one value",
		"--virtual --prefer=":                                     "--prefer: at least one value",
		"--virtual --strategy=":                                   "--strategy: at least one value",
		"--virtual --mode all":                                    `mode "all"`,
		"--virtual --prefer some":                                 `prefer "some"`,
		"--virtual --prefer only":                                 "only mode hash has it",
		"--virtual --strategy best":                               `strategy "best"`,
		"--virtual --slots -1":                                    "-1 slots",
		"--virtual --slots 201":                                   "201 slots: there can be 1 to 200",
		"--virtual --pods 5000 --nodes 10":                        "511 pods on a node",
		"--virtual --decision 0s":                                 "decision 0s: must be 1ns to 1h0m0s",
		"--virtual --decision 2h":                                 "decision 2h",
		"--virtual --check -1ms":                                  "check -1ms",
		"--virtual --hop -1ms":                                    "hop -1ms",
		"--virtual --lag -1ms":                                    "lag -1ms",
		"--virtual --lag 100h":                                    "lag 100h",
		"--virtual --foreign-from -1s":                            "--foreign-from -1s",
		"--virtual --api -1":                                      "API limit -1",
		"--virtual --api 2000000000":                              "API limit 2000000000",
		"--virtual -o yaml":                                       "-o yaml",
		"--virtual --pods 99000000 --nodes 9000000 --decision 1h": "more than 100 years",
	} {
		cmd := instancesCommand()
		var out bytes.Buffer
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(strings.Fields(args))
		err := cmd.Execute()
		var mistake interface{ Usage() }
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &mistake) || out.Len() > 0 {
			t.Errorf("%q: error %v, output %q; want a mistake with %q", args, err, out.String(), want)
		}
	}
}

// Flags that do not change a run do not repeat it, and the run of one instance is compared with wherever it comes.
func TestInstancesRuns(t *testing.T) {
	cmd := instancesCommand()
	var out, progress bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&progress)
	cmd.SetArgs(strings.Fields("--virtual --mode hash,uncoordinated --prefer none,own " +
		"--instances 2,1 --decision 1ms --nodes 20 --pods 100"))
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
	if len(rows) != 4 {
		t.Errorf("%d runs:\n%s", len(rows), out.String())
	}
	if speedup := strings.Split(rows[0], "|")[6]; speedup == "  " {
		t.Errorf("two instances are not compared with one:\n%s", out.String())
	}
}
