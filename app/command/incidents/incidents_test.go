// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

// cluster is an engine with a flight recorder, as behind the loop.
type cluster struct {
	t      *testing.T
	engine *engine.Engine
	flight *incident.Flight
	store  *Store
	intake *convert.Intake
	now    record.Time
	pods   int
	server incident.Server
}

func newCluster(t *testing.T, o Options) *cluster {
	t.Helper()
	o.Config, o.Timeout, o.Tool = config.Default(), 5*time.Minute, "kumiki test"
	cfg, err := app.Plugins{}.EngineConfig(o.Config)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(o.Timeout)
	c := &cluster{t: t, engine: engine.New(cfg), intake: convert.NewIntake(), now: record.Second}
	c.flight = incident.NewFlight(c.engine.State, incident.DefaultLimits, func() incident.Server { return c.server })
	c.store = New(c.flight, o)
	return c
}

func (c *cluster) step(ev engine.Event) []engine.Effect {
	c.flight.Before(ev)
	effects := c.engine.Step(ev)
	c.flight.After(ev, effects)
	return effects
}

// run lets pods come; those that fit are bound unless the API server is away.
func (c *cluster) run(pods int, prefix string, away bool) {
	if c.pods == 0 {
		for i := range 3 {
			c.step(engine.NodeSet{Node: c.intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
				Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("500"),
					"memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110")}}})})
		}
		c.step(engine.Synced{})
	}
	for range pods {
		c.flight.TurnBegan()
		c.now += record.Second
		c.step(engine.Tick{Now: c.now})
		c.pods++
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(prefix, c.pods),
			UID: types.UID(fmt.Sprint("u", c.pods))}, Spec: v1.PodSpec{SchedulerName: "default-scheduler",
			Containers: []v1.Container{{Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}},
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}}}
		c.step(engine.PodSet{Pod: c.intake.Pod(pod)})
		for _, e := range c.step(engine.Cycle{}) {
			if b, is := e.(engine.Bind); is && !away {
				c.step(engine.BindDone{Pod: b.Pod, Node: b.Node})
				pod.Spec.NodeName = b.Node
				c.step(engine.PodSet{Pod: c.intake.Pod(pod)})
			}
		}
		c.flight.TurnEnded(true, 0)
	}
}

// write writes a bundle into a file.
func (c *cluster) write() (name string, in record.Incident) {
	c.t.Helper()
	in = c.store.Write(context.Background(), incident.Finding{Cause: incident.ByHand, At: c.now})
	if in.Error != "" {
		c.t.Fatal(in.Error)
	}
	content, err := c.store.Open(in.ID)
	if err != nil {
		c.t.Fatal(err)
	}
	defer content.Close()
	data, err := io.ReadAll(content)
	if err != nil {
		c.t.Fatal(err)
	}
	name = filepath.Join(c.t.TempDir(), in.ID+extension)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return name, in
}

// TestABundleReplays: the API server goes away under load. The incident is detected, its bundle names the cause and
// replays with equal digests, and holds no value of an environment variable.
func TestABundleReplays(t *testing.T) {
	c := newCluster(t, Options{})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.store.Run(ctx) })
	c.run(30, "p", false)
	c.run(15, "p", true)
	var list record.Incidents
	for deadline := time.Now().Add(time.Minute); len(list.Incidents) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
		list = c.store.List()
	}
	stop()
	running.Wait()
	if len(list.Incidents) != 1 || list.Incidents[0].Cause != "no-binds" || list.Incidents[0].Error != "" {
		t.Fatalf("incidents %+v", list.Incidents)
	}
	name, in := c.write()
	data, err := os.ReadFile(name)
	if err != nil || bytes.Contains(data, []byte("hunter2")) {
		t.Errorf("the bundle has an environment value (%v)", err)
	}
	r, err := Replay(name, app.Plugins{}, in)
	if err != nil || r.Different != 0 || r.Events != in.Events || r.Decisions < 45 {
		t.Errorf("replayed %+v, %v", r, err)
	}
	b, err := bundle.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, kind := range []bundle.Kind{bundle.Incident, bundle.Goroutines, bundle.Recording, bundle.Digests} {
		if p, ok := b.Part(kind); !ok || p.Missing != "" || p.Size == 0 {
			t.Errorf("part %s is %+v", kind, p)
		}
	}
	events, err := b.Open(bundle.Recording)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(events); err != nil || bytes.Contains(text, []byte("hunter2")) {
		t.Errorf("the recording has an environment value (%v)", err)
	}
}

// rewrite returns a bundle in which one part has another content, with digests that fit.
func rewrite(t *testing.T, name string, kind bundle.Kind, change func([]byte) []byte) string {
	t.Helper()
	b, err := bundle.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var out bytes.Buffer
	w := bundle.NewWriter(&out)
	w.Manifest = b.Manifest
	w.Manifest.Parts = nil
	for _, p := range b.Manifest.Parts {
		content, err := b.Open(p.Kind)
		var missing *bundle.Missing
		if errors.As(err, &missing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind == kind {
			data = change(data)
		}
		if err := w.Add(p, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "changed.kumiki")
	if err := os.WriteFile(to, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestTheFirstDifferenceIsNamed: a digest that is not that of the effects names the event and its effects now.
func TestTheFirstDifferenceIsNamed(t *testing.T) {
	c := newCluster(t, Options{})
	c.run(20, "p", false)
	name, in := c.write()
	other := rewrite(t, name, bundle.Digests, func(sums []byte) []byte {
		i := bytes.IndexFunc(sums[8*30:], func(r rune) bool { return r != 0 }) + 8*30
		sums[i] ^= 1
		sums[len(sums)-1] ^= 1
		return sums
	})
	r, err := Replay(other, app.Plugins{}, in)
	if err != nil || r.Different != 2 || r.First == nil || r.First.Event <= 30 || !strings.HasPrefix(r.First.Line, `{"event":`) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBadBundles: each gives a reason, and none a result.
func TestBadBundles(t *testing.T) {
	c := newCluster(t, Options{})
	c.run(20, "p", false)
	good, in := c.write()
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	file := func(data []byte) string {
		name := filepath.Join(t.TempDir(), "bad.kumiki")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for want, name := range map[string]string{ // order: each by itself
		"truncated":                    file(data[:len(data)-100]),
		"has no digest of its effects": rewrite(t, good, bundle.Digests, func(s []byte) []byte { return s[:8] }),
		"left after the last event":    rewrite(t, good, bundle.Digests, func(s []byte) []byte { return append(s, 1, 2) }),
		"not a recording":              rewrite(t, good, bundle.Recording, func([]byte) []byte { return []byte("{}\n") }),
		"before the state":             rewrite(t, good, bundle.Recording, func(s []byte) []byte { return s[:bytes.IndexByte(s, '\n')+1] }),
		"unknown event": rewrite(t, good, bundle.Recording, func(s []byte) []byte {
			return bytes.Replace(s, []byte(`"event":"Cycle"`), []byte(`"event":"Cycles"`), 1)
		}),
		"newer than this program":       file(zipped(t, `{"format":"kumiki-bundle","version":99}`, nil)),
		"the compression ratio exceeds": file(zipped(t, bombManifest(), map[string][]byte{"recording.tape": make([]byte, 4<<20)})),
		"no recording":                  file(zipped(t, `{"format":"kumiki-bundle","version":1}`, nil)),
		"does not have the digest": file(zipped(t, `{"format":"kumiki-bundle","version":1,"parts":[{"kind":"recording",`+
			`"name":"a","size":1,"sha256":"00"}]}`, map[string][]byte{"a": {1}})),
	} {
		if r, err := Replay(name, app.Plugins{}, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %d events", want, err, r.Events)
		}
	}
}

func bombManifest() string {
	sum := sha256.Sum256(make([]byte, 4<<20))
	return fmt.Sprintf(`{"format":"kumiki-bundle","version":1,"parts":[{"kind":"recording","name":"recording.tape",`+
		`"size":%d,"sha256":"%s"}]}`, 4<<20, hex.EncodeToString(sum[:]))
}

func zipped(t *testing.T, manifest string, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	f, err := z.Create("manifest.json")
	if err == nil {
		_, err = f.Write([]byte(manifest))
	}
	for name, data := range files { // order: the archive has one of them
		if err == nil {
			f, err = z.Create(name)
		}
		if err == nil {
			_, err = f.Write(data)
		}
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestNewestBundlesAreKept: two in memory, and in the directory as many files and bytes as it may have. A new process
// lists those of the one before.
func TestNewestBundlesAreKept(t *testing.T) {
	dir := t.TempDir()
	c := newCluster(t, Options{Dir: dir, MaxFiles: 3, MaxBytes: 1 << 30})
	c.run(5, "p", false)
	for range 5 {
		c.now += record.Second
		c.write()
	}
	if len(c.store.memory) != 2 || len(c.store.List().Incidents) != 3 {
		t.Errorf("%d bundles in memory, %d listed", len(c.store.memory), len(c.store.List().Incidents))
	}
	again := newCluster(t, Options{Dir: dir, MaxFiles: 3, MaxBytes: 1 << 30})
	if got, want := ids(again.store.List()), ids(c.store.List()); got != want || strings.Count(want, "by-hand") != 3 {
		t.Errorf("a new process lists %s, want %s", got, want)
	}
	size := c.store.List().Incidents[0].Size
	small := newCluster(t, Options{Dir: dir, MaxFiles: 100, MaxBytes: 2*size + size/2})
	small.now = c.now
	small.run(5, "p", false)
	small.write()
	if n := len(small.store.List().Incidents); n != 2 {
		t.Errorf("%d bundles in a directory for two and a half", n)
	}
	none := newCluster(t, Options{})
	none.run(5, "p", false)
	for range 4 {
		none.write()
	}
	if n := len(none.store.List().Incidents); n != 2 {
		t.Errorf("%d bundles without a directory", n)
	}
}

func ids(list record.Incidents) string {
	var all []string
	for _, in := range list.Incidents {
		all = append(all, in.ID)
	}
	return strings.Join(all, " ")
}

// TestAFullDirectoryLosesNoBundleInMemory: if the bundle cannot be saved, it is kept in memory.
func TestAFullDirectoryLosesNoBundleInMemory(t *testing.T) {
	c := newCluster(t, Options{Dir: filepath.Join(t.TempDir(), "gone"), MaxFiles: 3, MaxBytes: 1 << 30})
	c.run(5, "p", false)
	if _, in := c.write(); in.File != "" {
		t.Errorf("saved as %s", in.File)
	}
}

// TestTwoAtOnce: bundles that are asked for at the same time while the scheduler runs all replay.
func TestTwoAtOnce(t *testing.T) {
	c := newCluster(t, Options{Dir: t.TempDir(), MaxFiles: 10, MaxBytes: 1 << 30})
	c.run(20, "p", false)
	server := httptest.NewServer(c.store.Handler())
	defer server.Close()
	var asks sync.WaitGroup
	for range 4 {
		asks.Go(func() {
			resp, err := http.Get(server.URL + Path + "/new")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if data, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !bytes.HasPrefix(data, []byte("PK")) {
				t.Errorf("%d, %.40q, %v", resp.StatusCode, data, err)
			}
		})
	}
	c.run(50, "q", false)
	asks.Wait()
	list := c.store.List().Incidents
	if len(list) != 4 {
		t.Fatalf("%d incidents", len(list))
	}
	for _, in := range list {
		if r, err := Replay(in.File, app.Plugins{}, in); err != nil || r.Different > 0 || r.Events != in.Events {
			t.Errorf("%s: %d of %d events, %d differ, %v", in.ID, r.Events, in.Events, r.Different, err)
		}
	}
}

// runUntil runs a store, lets something happen and ends it.
func runUntil(s *Store, happens func()) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	happens()
	stop()
	running.Wait()
}

func causes(list record.Incidents) string {
	var all []string
	for _, in := range list.Incidents {
		all = append(all, in.Cause)
	}
	return strings.Join(all, " ")
}

// TestALostLeaseIsWrittenBeforeTheEnd: the API server answers no request, and so the leader loses its lease. What was
// found is written before the process ends, and the next process finds it. Within ten minutes it writes no second
// bundle of a cause.
func TestALostLeaseIsWrittenBeforeTheEnd(t *testing.T) {
	o := Options{Dir: t.TempDir(), MaxFiles: 10, MaxBytes: 1 << 30}
	c := newCluster(t, o)
	c.now = record.Time(time.Now().UnixNano())
	runUntil(c.store, func() {
		c.run(5, "p", false)
		c.server = incident.Server{Since: c.now, Requests: 2, Oldest: "PUT /leases/a", Leads: true, Renewed: c.now}
		c.run(8, "q", true)
		c.store.LeaseLost()
	})
	next := newCluster(t, o)
	list := next.store.List()
	if got := causes(list); got != "api-unanswered lease-lost" && got != "lease-lost api-unanswered" {
		t.Fatalf("the next process finds %q", got)
	}
	for _, in := range list.Incidents {
		if !strings.Contains(in.Detail, "2 requests without an answer, the oldest under way PUT /leases/a") {
			t.Errorf("%s is about %q", in.Cause, in.Detail)
		}
		if r, err := Replay(in.File, app.Plugins{}, in); err != nil || r.Different > 0 || r.Events != in.Events {
			t.Errorf("%s: replayed %+v, %v", in.Cause, r, err)
		}
	}
	runUntil(next.store, next.store.LeaseLost)
	if got := len(next.store.List().Incidents); got != 2 {
		t.Errorf("after a second lost lease, %d bundles", got)
	}
}

// TestNothingIsWrittenForAnEndWithoutADirectory: memory ends with the process.
func TestNothingIsWrittenForAnEndWithoutADirectory(t *testing.T) {
	c := newCluster(t, Options{})
	runUntil(c.store, c.store.LeaseLost)
	if list := c.store.List().Incidents; len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

// TestServed: the list and the bundles are served; names that are none are not looked up.
func TestServed(t *testing.T) {
	c := newCluster(t, Options{Dir: t.TempDir(), MaxFiles: 10, MaxBytes: 1 << 30})
	c.run(5, "p", false)
	_, in := c.write()
	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		c.store.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	var list record.Incidents
	if code, body := get("GET", Path); code != http.StatusOK || json.Unmarshal([]byte(body), &list) != nil || ids(list) != in.ID {
		t.Errorf("list: %d, %s", code, body)
	}
	if code, body := get("GET", Path+"/"+in.ID); code != http.StatusOK || int64(len(body)) != in.Size {
		t.Errorf("bundle: %d, %d bytes of %d", code, len(body), in.Size)
	}
	for _, id := range []string{"x", "..%2f..%2fetc%2fpasswd", "../../etc/passwd", strings.Replace(in.ID, "by-hand", "no-binds", 1)} {
		if code, _ := get("GET", Path+"/"+id); code != http.StatusNotFound {
			t.Errorf("%s: %d", id, code)
		}
	}
	outside := filepath.Join(filepath.Dir(c.store.opts.Dir), "outside"+extension)
	if err := os.WriteFile(outside, []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	if content, err := c.store.Open("../outside"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a file outside of the directory: %v, %v", content, err)
	}
	if code, _ := get("POST", Path); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
}
