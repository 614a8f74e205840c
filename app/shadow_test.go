// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWhoJudges: the profile of the scheduler's name, or the first one under that name; alone, without extenders and
// without a lease.
// Faults: pods of other profiles that are counted as pending; a shadow that takes the lease.
func TestWhoJudges(t *testing.T) {
	c := config.Default()
	c.Extenders = []configv1.Extender{{URLPrefix: "http://x"}}
	c.Profiles = []config.Profile{{SchedulerName: "a"}, {SchedulerName: "b"}}
	for scheduler, want := range map[string]string{"a": "a", "b": "b", "c": "a"} {
		got, profile := ShadowConfig(c, scheduler)
		if profile != want || len(got.Profiles) != 1 || got.Profiles[0].SchedulerName != scheduler ||
			got.Extenders != nil || got.LeaderElection.Enabled {
			t.Errorf("of %s: judged by %s, %+v", scheduler, profile, got)
		}
	}
	if c.Profiles[0].SchedulerName != "a" || len(c.Extenders) != 1 || !c.LeaderElection.Enabled {
		t.Error("the configuration itself has changed")
	}
}

// TestAShadowOfAClusterThatIsDown says so at its end, and leaves nothing behind.
// Faults: an empty report that reads like agreement; goroutines that stay.
func TestAShadowOfAClusterThatIsDown(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	o := unreachableOptions(t)
	s, err := NewShadow(t.Context(), o, ShadowOptions{Scheduler: "x", For: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run(t.Context()); !errors.Is(err, ErrNotSynced) || r.Scheduler != "x" || r.Synced {
		t.Errorf("%+v, %v", r, err)
	}
	o.Serve.Secure.BindPort = 0
	missing, err := NewShadow(t.Context(), o, ShadowOptions{Scheduler: "x",
		ReportFile: filepath.Join(t.TempDir(), "missing", "report.json")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := missing.Run(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a report that has no place is found out too late: %v", err)
	}
	if err := s.Ask(t.Context(), func(*engine.Engine) {}); err == nil {
		t.Error("a shadow that has ended answers")
	}
}

// TestReportsReplaceEachOther: a reader of the file finds one complete report; no other file is left.
// Faults: a file that is written in place; a temporary file that stays when the report cannot be put there.
func TestReportsReplaceEachOther(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	long := record.ShadowReport{Scheduler: "s", Examples: make([]record.ShadowExample, 20)}
	for _, r := range []record.ShadowReport{long, {Scheduler: "s", Nodes: 3}} {
		if err := writeReport(file, r); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var back record.ShadowReport
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("read back: %+v, %v", back, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeReport(filepath.Join(dir, "taken"), long); err == nil {
		t.Error("a directory was replaced")
	}
	if err := writeReport(filepath.Join(dir, "missing", "report.json"), long); err == nil {
		t.Error("written into a directory that is not there")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// passed counts requests.
type passed int

func (p *passed) RoundTrip(*http.Request) (*http.Response, error) { *p++; return &http.Response{}, nil }

// TestTheConnectionRefusesToWrite, whatever the account may do.
// Fault: a method that is let through.
func TestTheConnectionRefusesToWrite(t *testing.T) {
	for method, may := range map[string]bool{"GET": true, "HEAD": true, "POST": false, "PUT": false, "PATCH": false,
		"DELETE": false} {
		var through passed
		r, err := http.NewRequestWithContext(t.Context(), method, "http://x/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readOnly{&through}.RoundTrip(r)
		if (err == nil) != may || (through == 1) != may {
			t.Errorf("%s: %v, %d requests", method, err, through)
		}
	}
}
