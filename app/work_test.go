// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

// TestWorkIsServed: a scheduler serves its work, but not with enableProfiling: false. A wrong interval has a reason.
func TestWorkIsServed(t *testing.T) {
	o := unreachableOptions(t)
	o.Config.LeaderElection.Enabled = false
	s, err := NewScheduler(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.opts.Config.Profiling = false
	if h := s.handlers(); h[workPath] != nil {
		t.Error("it is served without profiling")
	}
	s.opts.Config.Profiling = true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	get := func(query string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.handlers()[workPath].ServeHTTP(w, httptest.NewRequest(http.MethodGet, workPath+query, nil))
		return w
	}
	var r record.WorkReport
	if w := get(""); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &r) != nil || r.Interval <= 0 || len(r.Work) != record.WorkKinds {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if w := get("?seconds=1"); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &r) != nil || r.Steps["events"].Steps == 0 {
		t.Errorf("of a second: %d: %s", w.Code, w.Body)
	}
	if w := get("?seconds=1&exact=true"); w.Code != http.StatusOK {
		t.Errorf("with the boundaries of plugins: %d: %s", w.Code, w.Body)
	}
	for _, query := range []string{"?seconds=-1", "?seconds=601", "?seconds=x", "?seconds=71&exact=true", "?exact=x"} {
		if w := get(query); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d: %s", query, w.Code, w.Body)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if w := get(""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d: %s", w.Code, w.Body)
	}
}
