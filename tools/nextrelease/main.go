// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tables are what is compared, in the order in which an upgrade needs them.
var tables = []table{
	{"versions", "Modules that Kubernetes is built with; ours follow.", versions},
	{"feature gates", "app/command/gates. A removed gate is refused; a new default may change decisions.",
		gates},
	{"dependencies of gates", "app/command/gates.", dependencies},
	{"flags", "cmd/kumiki and conformance/flags.", flags},
	{"configuration types", "config and conformance/config.", types(place{"k8s.io/kube-scheduler", "config"},
		place{"k8s.io/kube-scheduler", "extender"}, place{kubernetes, "pkg/scheduler/apis/config"})},
	{"default plugins", "core/plugins/registry.go and config.", defaultPlugins},
	{"names of plugins", "config: a file that names one of them is accepted.",
		types(place{kubernetes, "pkg/scheduler/framework/plugins/names"})},
	{"registered events", "Reads and wake-ups of each plugin.", events},
	{"contract of plugins", "host: what hosted plugins are given; events' names are labels of metrics.",
		types(place{"k8s.io/kube-scheduler", "framework"}, place{kubernetes, "pkg/scheduler/framework/events.go"})},
	{"messages", "Conditions, events and errors. Clients may parse them.", messages},
	{"metrics", "kube/metrics and conformance/metrics.", metrics},
	{"access rights", "deploy and docs/deploy.md.", roles},
	{"API types", "What intake reads.", types(place{"k8s.io/api", "core/v1"}, place{"k8s.io/api", "scheduling"},
		place{"k8s.io/api", "resource"}, place{"k8s.io/api", "storage"}, place{"k8s.io/api", "policy/v1"})},
	{"workloads of scheduler_perf", "bench/workload reads them; their thresholds are those of perf-dash.", thresholds},
	{"functions of the scheduler", "Read each; a difference in decisions is found by `make conformance`.",
		bodies(place{kubernetes, "pkg/scheduler"}, place{kubernetes, "cmd/kube-scheduler"},
			place{"k8s.io/kube-scheduler", ""})},
	{"functions of libraries", "Our binary uses these modules; a fast path of core's own follows by hand.",
		bodies(place{"k8s.io/component-helpers", "resource"}, place{"k8s.io/component-helpers", "scheduling"},
			place{"k8s.io/component-helpers", "nodedeclaredfeatures"}, place{"k8s.io/component-helpers", "storage"},
			place{"k8s.io/dynamic-resource-allocation", ""}, place{"k8s.io/client-go", "tools/leaderelection"},
			place{"k8s.io/client-go", "tools/events"})},
}

// Unseen is what no table shows. It is printed with every comparison.
const unseen = `Not visible to this command:
  - what a changed function does differently: the tables name it, reading it or "make conformance" shows it;
  - behaviour of the API server, for example validation, defaults, and which API versions are served;
  - changes in modules other than those of Kubernetes (CEL, etcd, client_golang), besides their versions;
  - values that are computed, for example the order of a map, and names that are built from parts;
  - the reason of a change: read the pull request that CHANGELOG names.
`

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr, download); err != nil {
		fmt.Fprintln(os.Stderr, "nextrelease:", err)
		os.Exit(1)
	}
}

func run(args []string, out, progress io.Writer, source func(version string) (release, error)) error {
	set := flag.NewFlagSet("nextrelease", flag.ContinueOnError)
	set.SetOutput(progress)
	from := set.String("from", "", "the release that is matched today, for example 1.36.3")
	to := set.String("to", "", "the next release, for example 1.37.1")
	match := set.String("tables", "", "only tables whose name matches this regular expression")
	format := set.String("o", "", "json or yaml instead of tables")
	width := set.Int("width", 160, "cut values after this many characters; 0 for never")
	switch err := set.Parse(args); {
	case err == flag.ErrHelp:
		return nil
	case err != nil:
		return err
	case *from == "" || *to == "":
		return fmt.Errorf("-from and -to are needed, for example -from 1.36.3 -to 1.37.1")
	case *format != "" && *format != "json" && *format != "yaml":
		return fmt.Errorf("-o %s: want json or yaml", *format)
	}
	only, err := regexp.Compile(*match)
	if err != nil {
		return fmt.Errorf("-tables: %w", err)
	}
	fmt.Fprintf(progress, "reading %s and %s\n", *from, *to)
	was, err := source(*from)
	if err != nil {
		return err
	}
	is, err := source(*to)
	if err != nil {
		return err
	}
	all, failed := []difference{}, 0
	for _, t := range tables {
		if !only.MatchString(t.Name) {
			continue
		}
		fmt.Fprintf(progress, "comparing %s\n", t.Name)
		d, err := compare(t, was, is)
		if err != nil {
			failed++
			fmt.Fprintln(progress, "nextrelease:", err)
			continue
		}
		all = append(all, d)
	}
	if err := write(out, all, *format, *width); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d tables could not be compared", failed)
	}
	return nil
}

func write(out io.Writer, all []difference, format string, width int) error {
	switch format {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(all)
	case "yaml":
		return yaml.NewEncoder(out).Encode(all)
	}
	for _, d := range all {
		fmt.Fprintf(out, "%s: %d differ, the newer release has %d. %s\n", d.Name, len(d.Changes), d.Rows, d.About)
		for _, c := range d.Changes {
			fmt.Fprintln(out, line(c, strings.HasPrefix(d.Name, "functions"), width))
		}
		fmt.Fprintln(out)
	}
	_, err := io.WriteString(out, unseen)
	return err
}

// line prints one change. Of functions it prints how many lines differ.
func line(c change, function bool, width int) string {
	key := cut(strings.ReplaceAll(c.Key, "\n", `\n`), width)
	switch {
	case function:
		gone, come := lines(c.Was, c.Is)
		return fmt.Sprintf("  %s %s  %d lines removed, %d added", c.sign(), key, gone, come)
	case c.Was == "":
		return fmt.Sprintf("  + %s  %s", key, cut(c.Is, width))
	case c.Is == "":
		return fmt.Sprintf("  - %s  %s", key, cut(c.Was, width))
	}
	was, is := parts(c.Was, c.Is)
	return fmt.Sprintf("  ~ %s  %s  ->  %s", key, cut(was, width), cut(is, width))
}

func cut(s string, width int) string {
	if r := []rune(s); width > 0 && len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// lines counts lines of was that is does not have, and the other way round, by a longest common subsequence.
func lines(was, is string) (gone, come int) {
	a, b := split(was), split(is)
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return len(a) - row[len(b)], len(b) - row[len(b)]
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
