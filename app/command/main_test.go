// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kumiki-scheduler/kumiki/app"
)

// command runs a command line as main does.
func command(t *testing.T, line ...string) (code int, out, complaints string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(context.Background(), line, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// TestExitCodes: 0 for yes, 1 for no, 2 for a mistake on the command line; data on stdout, the rest on stderr.
func TestExitCodes(t *testing.T) {
	good, bad := file(t, head), file(t, head+"paralelism: 1\n")
	for _, tt := range []struct {
		line      []string
		code      int
		out, errs string // each must be contained
	}{
		{[]string{"kumiki", "version"}, 0, "kube-scheduler v1.37.1", ""},
		{[]string{"kumiki", "version", "-o", "json"}, 0, `"kubernetes": "v1.37.1"`, ""},
		{[]string{"kumiki", "config", "validate", good}, 0, "is valid: 1 profile(s)", ""},
		{[]string{"kumiki", "config", "validate", bad}, 1, "", "line 3: paralelism: unknown field"},
		{[]string{"kumiki", "config", "validate", "/does/not/exist"}, 1, "", "no such file"},
		{[]string{"kumiki", "config", "show", "-o", "yaml"}, 0, "schedulerName: default-scheduler", ""},
		{[]string{"kumiki", "config", "validate"}, 2, "", "accepts 1 arg(s)"},
		{[]string{"kumiki", "nonsense"}, 2, "", `unknown command "nonsense"`},
		{[]string{"kumiki", "why"}, 2, "", "usage: kumiki why"},
		{[]string{"kumiki", "why", "service/x"}, 2, "", `can explain pods, nodes and gangs, not "service"`},
		{[]string{"kumiki", "why", "pod/"}, 2, "", "want one name"},
		{[]string{"kumiki", "queue", "-o", "xml"}, 2, "", "must be one of table, wide, json, yaml"},
		{[]string{"kumiki", "gangs", "-o", "xml"}, 2, "", "must be one of table, wide, json, yaml"},
		{[]string{"kumiki", "gangs", "train"}, 2, "", "usage: kumiki gangs"},
		{[]string{"kumiki", "gangs", "-w", "--kubeconfig", "/does/not/exist"}, 1, "", "/does/not/exist"},
		{[]string{"kumiki", "queue", "--bogus"}, 2, "", "unknown flag: --bogus\nsee 'kumiki queue --help'"},
		{[]string{"kumiki", "queue", "--kubeconfig", "/does/not/exist"}, 1, "", "/does/not/exist"},
		{[]string{"kumiki", "queue", "--kubeconfig", good, "--scheduler-lease", "x"}, 2, "", "must be namespace/name"},
		{[]string{"kumiki", "up", "--nodes", "0"}, 2, "", "--nodes must be at least 5, got 0"},
		{[]string{"kumiki", "up", "-f", "/does/not/exist"}, 1, "", "no such file"},
		{[]string{"kumiki", "bench", "core", "--ablate", "NodePort"}, 2, "",
			`plugin "NodePort" is unknown; there are SchedulingGates, `},
		{[]string{"kumiki", "bench", "--workload", "basic", "--ablate", "NodePort"}, 2, "",
			`plugin "NodePort" is unknown`},
		{[]string{"kumiki", "bench", "--workload", "nothing"}, 2, "", "there is no workload nothing"},
		{[]string{"kumiki", "bench", "basic", "--nodes", "0"}, 2, "", "nodes and pods must be at least 1"},
		{[]string{"kumiki", "bench", "--file", "nowhere.yaml"}, 2, "", "reading workloads: open nowhere.yaml"},
		{[]string{"kumiki", "bench", "--runs", "2"}, 2, "", "no workloads are selected"},
		{[]string{"kumiki", "bench", "compare", good}, 2, "", "compare takes two reports, not 1"},
		{[]string{"kumiki", "bench", "compare", good, good}, 2, "", "not a report of bench -o json"},
		{[]string{"kumiki", "bench", "table", "--again", "x"}, 2, "", "it goes with --resume"},
		{[]string{"kumiki", "bench", "table", "--list"}, 0, "basic/5000Nodes_5000Pods", ""},
		{[]string{"kumiki", "replay", good}, 1, "", "not a recording"},
		{[]string{"kumiki", "scheduler", "--config", bad}, 1, "", "unknown field"},
		{[]string{"/usr/bin/kube-scheduler", "--config", bad}, 1, "", "unknown field"},
		{[]string{"kube-scheduler", "--kubeconfig", "/does/not/exist", "--secure-port", "0"}, 1, "", "/does/not/exist"},
		{[]string{"kumiki", "scheduler", "--leader-elect-resource-lock", "endpoints"}, 2, "", "must be leases"},
		{[]string{"kumiki", "scheduler", "--leader-elect-lease-duration", "5s"}, 2, "",
			"must be longer than the renew deadline"},
		{[]string{"kumiki", "scheduler", "--secure-port", "-3"}, 2, "", "--secure-port -3 must be between 0 and 65535"},
		{[]string{"/usr/local/bin/kubectl-kumiki", "--help"}, 0, "kubectl kumiki", ""},
		{[]string{"kumiki", "completion", "bash"}, 0, "complete", ""},
	} {
		t.Run(strings.Join(tt.line, " "), func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/does/not/exist")
			code, out, errs := command(t, tt.line...)
			if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(errs, tt.errs) {
				t.Errorf("code %d, want %d\nstdout: %s\nstderr: %s", code, tt.code, out, errs)
			}
		})
	}
}

// TestHelpNamesOneValuePerFlag: pflag prints the first words in backquotes as the value of a flag, so a command in
// backquotes reads as if it were one (--record kumiki replay).
func TestHelpNamesOneValuePerFlag(t *testing.T) {
	flags := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			flags++
			value, _ := pflag.UnquoteUsage(f)
			if strings.ContainsAny(value, " \t") {
				t.Errorf("%s --help prints --%s %s", c.CommandPath(), f.Name, value)
			}
			if f.Name == "schedulers" {
				t.Errorf("%s has --schedulers; the flag is --scheduler everywhere", c.CommandPath())
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	plugins, err := app.NewPlugins()
	if err != nil {
		t.Fatal(err)
	}
	visit(commandFor("kumiki", streams{Out: io.Discard, Err: io.Discard}, plugins))
	if flags < 100 {
		t.Errorf("saw only %d flags", flags)
	}
}

// TestSubject: the forms in which kubectl names things.
func TestSubject(t *testing.T) {
	for line, want := range map[string]subject{
		"x": {"pod", "x"}, "pod/x": {"pod", "x"}, "pod x": {"pod", "x"}, "po/x": {"pod", "x"}, "Pods x": {"pod", "x"},
		"node/n": {"node", "n"}, "node n": {"node", "n"}, "no n": {"node", "n"}, "pod node": {"pod", "node"},
		"gang/g": {"gang", "g"}, "podgroup g": {"gang", "g"},
	} {
		got, err := parseSubject(strings.Fields(line))
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", line, got, err)
		}
	}
}
