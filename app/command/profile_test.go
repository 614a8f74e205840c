// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	runtimepprof "runtime/pprof"
	"runtime/trace"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/compare"
)

// profiled is a process with the endpoints of a scheduler: this one. It denies paths with a status, and serves others if
// they are added.
func profiled(t *testing.T, denied map[string]int, add ...func(*http.ServeMux)) (endpoint, ca string) {
	t.Helper()
	mux := http.NewServeMux()
	var traced atomic.Bool // the trace was recorded; metrics are sampled meanwhile
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		scrapes := 1
		if traced.Load() {
			scrapes = 2
		}
		fmt.Fprintf(w, "process_start_time_seconds 5\nprocess_cpu_seconds_total %d\n", 10*scrapes)
		fmt.Fprintf(w, "scheduler_schedule_attempts_total{profile=\"p\",result=\"scheduled\"} %d\n", 3*scrapes)
	})
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/kumiki/work", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"intervalNs": 1000000000, "work": {"rows_evaluated": 10}, "steps": {"cycles": {"steps": 5, "measured": 5, "cpuNs": 5000, "wallNs": 5100}},
			"plugins": [{"plugin": "NodeResourcesFit", "point": "Filter", "cpuNs": 100, "cycles": 5}, {"plugin": "", "point": "", "cpuNs": 50, "cycles": 5}],
			"waste": {"wakeUps": [{"plugin": "NodePorts", "event": "AssignedPodDelete", "woken": 4, "useless": 3, "measured": 3, "cpuNs": 3000}],
			"flushed": 7, "recalledBinds": 2, "uselessEvictions": 3, "fullScans": 4, "decisions": 5}}`)
	})
	mux.HandleFunc("/debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		defer traced.Store(true)
		time.AfterFunc(200*time.Millisecond, func() { // without it there may be no CPU sample
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
			}
		})
		pprof.Trace(w, r)
	})
	mux.HandleFunc("/debug/pprof/allocs", pprof.Handler("allocs").ServeHTTP)
	for _, f := range add {
		f(mux)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := denied[r.URL.Path]; code != 0 {
			http.Error(w, "no", code)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server.Listener.Addr().String(), file(t, string(certificate))
}

// recordOf records a scheduler for a second, and returns the file.
func recordOf(t *testing.T, endpoint string, more ...string) (name, progress string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "a.kumiki")
	code, out, errs := command(t, append([]string{"kumiki", "profile", "record", "--seconds", "1", "-f", name,
		"--kubeconfig", kubeconfigAt(t, "http://127.0.0.1:1"), "--scheduler-endpoint", endpoint}, more...)...)
	if code != 0 || out != name+"\n" {
		t.Fatalf("code %d, output %q\n%s", code, out, errs)
	}
	return name, errs
}

// TestProfileOfAScheduler: record, then each way to show it. The name of the file is on stdout, progress on stderr.
func TestProfileOfAScheduler(t *testing.T) {
	endpoint, ca := profiled(t, map[string]int{"/debug/pprof/allocs": http.StatusForbidden})
	name, progress := recordOf(t, "https://"+endpoint, "--scheduler-ca", ca)
	for _, want := range []string{"the trace has begun", "no pod-times: ", "no allocs-profile: the scheduler denies it (403): you need " +
		"get on the nonResourceURL /debug/pprof/allocs"} {
		if !strings.Contains(progress, want) {
			t.Errorf("progress %q does not contain %q", progress, want)
		}
	}
	var p apm.Profile
	code, out, errs := command(t, "kumiki", "profile", "top", name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil {
		t.Fatalf("code %d: %v\n%s", code, err, errs)
	}
	if p.Scheduler != endpoint || *p.CPU.Process != 10e9 || p.Attempts[0] != (apm.Attempt{Result: "scheduled", Count: 3}) {
		t.Errorf("profile of %q, CPU %+v, attempts %v", p.Scheduler, p.CPU, p.Attempts)
	}
	if !strings.Contains(p.Unknown["allocated"], "403") || !strings.Contains(p.Unknown["cycles"], "no scheduling loop") {
		t.Errorf("not observed: %v", p.Unknown)
	}
	var same apm.Profile
	if _, out, _ := command(t, "kumiki", "profile", "top", name, "-o", "yaml"); yaml.Unmarshal([]byte(out), &same) != nil ||
		*same.Traced != *p.Traced {
		t.Errorf("the YAML is not the same profile: %s", out)
	}
	for _, line := range []string{"--sort cpu", "--sort cum -o wide", "--sort wait --limit 3", "--limit 0"} {
		code, out, errs := command(t, append([]string{"kumiki", "profile", "top", name}, strings.Fields(line)...)...)
		for _, want := range []string{"LANE", "unattributed", "FUNCTION", "Not observed:", "  allocated: no allocs-profile",
			"cycles   5       5          0           5µs   1µs            1µs", "rows_evaluated   10       10.0         2.0         500ns",
			"flushed 7, recalled binds 2, useless evictions 3, decisions by full scan 4 of 5",
			"NodePorts   AssignedPodDelete   4          3         75%     3µs"} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%s: code %d, no %q in\n%s%s", line, code, want, out, errs)
			}
		}
	}
	more := fmt.Sprintf("%d more functions", len(p.Functions)-3)
	if _, out, _ := command(t, "kumiki", "profile", "top", name, "--limit", "3"); !strings.Contains(out, more) {
		t.Errorf("with --limit 3 there are not %s in\n%s", more, out)
	}
	if _, out, _ := command(t, "kumiki", "profile", "top", name, "--limit", "0"); strings.Contains(out, "more functions") {
		t.Errorf("--limit 0 limits\n%s", out)
	}
	exported(t, name)
}

// exported converts a profile with both formats.
func exported(t *testing.T, name string) {
	t.Helper()
	for _, format := range exportFormats {
		to := filepath.Join(t.TempDir(), format)
		code, out, errs := command(t, "kumiki", "profile", "export", name, "--format", format, "-f", to)
		text, err := os.ReadFile(to)
		if err != nil || code != 0 || out != to+"\n" {
			t.Fatalf("%s: code %d, output %q: %v\n%s", format, code, out, err, errs)
		}
		switch format {
		case "pprof":
			_, err = profile.Parse(bytes.NewReader(text))
		case "perfetto": // package timeline decodes it
			if !bytes.Contains(text, []byte("running")) || text[0] != 0x0a {
				err = fmt.Errorf("%d bytes, which begin with %#x", len(text), text[0])
			}
		default:
			err = json.Unmarshal(text, &map[string]any{})
		}
		if err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestProfileIsRefusedWithAReason: no certificate, wrong flags, a scheduler without profiling, and files that are
// no profiles. No file is written.
func TestProfileIsRefusedWithAReason(t *testing.T) {
	endpoint, ca := profiled(t, nil)
	off, caOfOff := profiled(t, map[string]int{"/debug/pprof/trace": 404, "/debug/pprof/profile": 404})
	dir := t.TempDir()
	no := filepath.Join(dir, "no.kumiki")
	at := func(line string) []string {
		return append([]string{"kumiki", "profile", "record", "--seconds", "1", "-f", no, "--kubeconfig",
			kubeconfigAt(t, "http://127.0.0.1:1")}, strings.Fields(line)...)
	}
	for _, c := range []struct {
		line []string
		code int
		want string
	}{
		{at("--scheduler-endpoint " + off + " --scheduler-ca " + caOfOff), 1, "is its configuration enableProfiling: false?"},
		{at("--scheduler-ca " + ca), 2, "need --scheduler-endpoint"},
		{at("--scheduler-endpoint " + endpoint + " --scheduler-ca " + no), 1, "reading --scheduler-ca"},
		{at("--scheduler-endpoint 127.0.0.1:1 --scheduler-insecure"), 1, "does not answer"},
		{at("--seconds 61 --exact"), 2, "with --exact, --seconds must be at most 60"},
		{at("--seconds 0"), 2, "--seconds must be from 1 to"},
		{[]string{"kumiki", "profile", "top", no}, 1, "opening the profile"},
		{[]string{"kumiki", "profile", "top", ca}, 1, "not a bundle, or truncated"},
		{[]string{"kumiki", "profile", "top", no, "--sort", "name"}, 2, "--sort must be one of cpu, cum, wait"},
		{[]string{"kumiki", "profile", "export", no, "--format", "svg", "-f", no}, 2, "--format must be one of"},
		{[]string{"kumiki", "profile", "export", no, "--format", "pprof"}, 2, "--file must name"},
	} {
		code, out, errs := command(t, c.line...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: code %d, output %q, errors %q, want %d and %q", c.line, code, out, errs, c.code, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left behind: %v (%v)", left, err)
	}
}

// TestAFullDiskKeepsTheFileOfBefore: a file that cannot be written to its end is not there, and an older one of its name
// stays as it is.
func TestAFullDiskKeepsTheFileOfBefore(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.kumiki")
	full := func(file *os.File) error {
		fmt.Fprint(file, "half")
		disk, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer disk.Close()
		_, err = disk.WriteString("more")
		return err
	}
	for _, before := range []string{"", "before"} {
		if before != "" {
			if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := writeFile(name, full)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v", err)
		}
		text, _ := os.ReadFile(name)
		if files, err := os.ReadDir(dir); err != nil || string(text) != before || len(files) != len(before)/len("before") {
			t.Errorf("the file is %q, and the directory has %v (%v)", text, files, err)
		}
	}
}

// TestProfilesAreCompared: with itself, nothing differs. The groups are separated by commas.
func TestProfilesAreCompared(t *testing.T) {
	endpoint, ca := profiled(t, nil)
	name, _ := recordOf(t, "https://"+endpoint, "--scheduler-ca", ca)
	var c compare.Comparison
	code, out, errs := command(t, "kumiki", "profile", "compare", name+","+name, name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &c); code != 0 || err != nil {
		t.Fatalf("code %d: %v\n%s", code, err, errs)
	}
	if len(c.A.Files) != 2 || len(c.B.Files) != 1 || len(c.Lanes) == 0 {
		t.Errorf("comparison %+v", c)
	}
	for _, r := range c.Totals {
		if r.Diff != nil && *r.Diff != 0 {
			t.Errorf("%s differs by %v", r.Name, *r.Diff)
		}
	}
	code, out, errs = command(t, "kumiki", "profile", "compare", name, name, "--limit", "2")
	for _, want := range []string{"WHOLE RECORDING", "CPU PER POD, BY LANE", "+0 (+0%)", "Not observed:", "no pod-times",
		"Notes:", "do not cover the variation between runs"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
	for line, want := range map[string]int{name: 2, name + " " + ca: 1, name + " " + name + " --limit -1": 2,
		name + ", " + name: 1} {
		code, out, _ := command(t, append([]string{"kumiki", "profile", "compare"}, strings.Fields(line)...)...)
		if code != want || out != "" {
			t.Errorf("%s: code %d, output %q, want %d", line, code, out, want)
		}
	}
}

// TestTwoRecordingsAtOnce: a process has one CPU profile and one trace at a time. What is not recorded is missing with the
// reason, and with neither there is no file.
func TestTwoRecordingsAtOnce(t *testing.T) {
	endpoint, ca := profiled(t, nil)
	if err := runtimepprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	defer runtimepprof.StopCPUProfile()
	name, progress := recordOf(t, "https://"+endpoint, "--scheduler-ca", ca)
	if !strings.Contains(progress, "no cpu-profile: another recording of the scheduler is under way") {
		t.Errorf("progress: %s", progress)
	}
	b, err := bundle.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if p, _ := b.Part(bundle.CPU); !strings.Contains(p.Missing, "another recording") {
		t.Errorf("%+v", p)
	}
	if err := trace.Start(io.Discard); err != nil {
		t.Fatal(err)
	}
	defer trace.Stop()
	code, _, errs := command(t, "kumiki", "profile", "record", "--seconds", "1", "-f", name+"2", "--kubeconfig",
		kubeconfigAt(t, "http://127.0.0.1:1"), "--scheduler-endpoint", "https://"+endpoint, "--scheduler-ca", ca)
	if _, err := os.Stat(name + "2"); code != 1 || err == nil || !strings.Contains(errs, "no CPU profile: another recording") {
		t.Errorf("code %d, file %v: %s", code, err, errs)
	}
}
