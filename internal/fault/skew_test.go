// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAClockThatIsAhead: the client reads the times of others as an hour ahead, in lists and watches, in the precision
// in which they were written, and its own times as it wrote them. Other strings stay. Catches times that are shifted
// in one direction only, and a watch that passes unshifted.
func TestAClockThatIsAhead(t *testing.T) {
	var stored string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", asJSON)
		switch {
		case r.Method == http.MethodPut:
			text, _ := io.ReadAll(r.Body)
			stored = string(text)
			w.Write(text)
		case r.URL.Query().Get("watch") != "":
			io.WriteString(w, `{"type":"ADDED","object":{"at":"2026-01-01T23:30:00Z"}}`+"\n"+
				`{"type":"MODIFIED","object":{"at":"2026-01-01T23:30:00.000001Z"}}`+"\n")
		default:
			io.WriteString(w, `{"at":"2026-01-01T23:30:00Z","text":"since 2026-01-01T23:30:00Z"}`)
		}
	}))
	defer server.Close()
	client := http.Client{Transport: Skew{time.Hour, http.DefaultTransport}}
	ask := func(method, query, body string) string {
		t.Helper()
		r, err := http.NewRequest(method, server.URL+"/api/v1/pods"+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := ask("GET", "", ""), `{"at":"2026-01-02T00:30:00Z","text":"since 2026-01-01T23:30:00Z"}`; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	own := `{"at":"2026-01-02T00:30:00.123456Z"}`
	if got := ask("PUT", "/p", own); got != own || stored != `{"at":"2026-01-01T23:30:00.123456Z"}` {
		t.Errorf("wrote %s, read %s, stored is %s", own, got, stored)
	}
	var at []string
	events := json.NewDecoder(strings.NewReader(ask("GET", "?watch=1", "")))
	for events.More() {
		var e struct{ Object struct{ At string } }
		if err := events.Decode(&e); err != nil {
			t.Fatal(err)
		}
		at = append(at, e.Object.At)
	}
	if got := strings.Join(at, " "); got != "2026-01-02T00:30:00Z 2026-01-02T00:30:00.000001Z" {
		t.Errorf("the watch said %s", got)
	}
}
