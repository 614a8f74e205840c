// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestShadowFlags: what makes no sense is refused before anything is asked of the cluster.
// Faults: a shadow that runs as a scheduler because its flag is missing; a recording that stays empty without a word.
func TestShadowFlags(t *testing.T) {
	for line, want := range map[string]string{
		"--shadow-report=r.json":                   "need --shadow=SCHEDULER",
		"--shadow-for=1h":                          "need --shadow=SCHEDULER",
		"--shadow=s --shadow-for=-1s":              "--shadow-for must not be negative, got -1s",
		"--shadow=s --record=f":                    "--record records decisions",
		"--shadow=s --shadow-for=soon":             "invalid argument",
		"--shadow=s --kubeconfig=/does/not/exist ": "/does/not/exist",
	} {
		t.Setenv("KUBECONFIG", "/does/not/exist")
		code, out, errs := command(t, append([]string{"kumiki", "scheduler", "--secure-port=0"},
			strings.Fields(line)...)...)
		if code == 0 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, stdout %q, stderr %s", line, code, out, errs)
		}
	}
}

// TestShadowShow: a report in a file or on standard input, as a table or as data; anything else is no report.
// Fault: an empty object that reads like a report without differences.
func TestShadowShow(t *testing.T) {
	report := record.ShadowReport{Scheduler: "default-scheduler", Profile: "mine", Synced: true, Nodes: 7,
		Agreement: record.ShadowAgreement{Pods: 4, Same: 3, Tied: 1, Share: 1}}
	raw, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	good, empty, broken := file(t, string(raw)), file(t, "{}"), file(t, "nonsense")
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{good, 0, "Shadow of default-scheduler"},
		{good + " -o wide", 0, "QUIET counts the pods"},
		{"-", 0, "judged by the profile mine, 7 nodes"},
		{empty, 1, "it is no report of a shadow"},
		{broken, 1, "invalid character"},
		{"/does/not/exist", 1, "no such file"},
		{"", 2, "accepts 1 arg(s)"},
	} {
		var out, errs bytes.Buffer
		line := append([]string{"kumiki", "shadow", "show"}, strings.Fields(tt.line)...)
		code := Run(context.Background(), line, strings.NewReader(string(raw)), &out, &errs)
		if code != tt.code || !strings.Contains(out.String()+errs.String(), tt.want) {
			t.Errorf("%v: code %d\n%s%s", line, code, &out, &errs)
		}
	}
	for _, format := range []string{"json", "yaml"} {
		_, out, _ := command(t, "kumiki", "shadow", "show", good, "-o", format)
		var back record.ShadowReport
		if err := yaml.Unmarshal([]byte(out), &back); err != nil || back.Agreement.Share != 1 || back.Nodes != 7 {
			t.Errorf("-o %s: %v\n%s", format, err, out)
		}
	}
	if code, out, _ := command(t, "kumiki", "shadow"); code != 0 || !strings.Contains(out, "show") {
		t.Errorf("kumiki shadow: code %d\n%s", code, out)
	}
}

// TestTheShadowAnswers: the report stands beside the other answers, also before there is anything to tell; at the end
// the page is the only thing on standard output. Faults: a report that hides behind the other answers; a page that is
// mixed with the log.
func TestTheShadowAnswers(t *testing.T) {
	s := serveWith(t, "--shadow=theirs", "--authorization-always-allow-paths=/livez,/kumiki/v1/shadow,/kumiki/v1/queue")
	var report record.ShadowReport
	if text, err := s.get("/kumiki/v1/shadow", &tls.Config{}); err != nil ||
		json.Unmarshal([]byte(text), &report) != nil || report.Scheduler != "theirs" ||
		report.Profile != "default-scheduler" {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := s.get("/kumiki/v1/queue", &tls.Config{}); err != nil || !strings.Contains(text, `"counts"`) {
		t.Errorf("%v: %s", err, text)
	}
	said := s.end()
	if page := s.out.String(); !strings.HasPrefix(page, "Shadow of theirs for ") ||
		!strings.Contains(page, "nothing was judged") {
		t.Errorf("at its end it prints %q", page)
	}
	if !strings.Contains(said, "nothing is written") {
		t.Errorf("the log does not say what runs:\n%s", said)
	}
}
