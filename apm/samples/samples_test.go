// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestParseKeepsWantedSeries: of /metrics only the closed list is kept, and damaged values are errors.
func TestParseKeepsWantedSeries(t *testing.T) {
	v, err := Parse(strings.NewReader(`# HELP scheduler_pending_pods text
scheduler_pending_pods{queue="active"} 3
scheduler_pending_pods{queue="backoff"} 4
scheduler_pending_pods_of_others 5
rest_client_request_duration_seconds_sum{host="h",verb="GET"} 1
rest_client_request_duration_seconds_sum{host="h",verb="POST"} 2.5
secret_metric{token="x"} 1
`))
	if err != nil || len(v) != 3 {
		t.Fatalf("%v, error %v", v, err)
	}
	if v.Sum("scheduler_pending_pods") != 7 || v.Sum("scheduler_pending_pods", `queue="active"`) != 3 ||
		v.Has("scheduler_pending") || !v.Has("scheduler_pending_pods", `queue="backoff"`) {
		t.Errorf("values %v", v)
	}
	for _, text := range []string{"kumiki_paused x\n", "kumiki_paused NaN\n", "kumiki_paused +Inf\n", "kumiki_paused{a=\"b\"}\n"} {
		if _, err := Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}

// TestReadRefusesHostileParts: a part of another machine gives a reason, and no value.
func TestReadRefusesHostileParts(t *testing.T) {
	good := `{"samples":[{"at":1,"values":{"a":1}},{"at":2,"values":{"a":2},"pods":{"unbound":1,"areaNs":5}}]}`
	d, err := Read(strings.NewReader(good))
	if err != nil || len(d.Samples) != 2 || d.Samples[1].Pods.Area != 5 {
		t.Fatalf("%+v, error %v", d, err)
	}
	values := Values{}
	for i := range maxValues + 1 {
		values[strings.Repeat("a", i+1)[:1]+string(rune('0'+i%10))+strings.Repeat("b", i%400)+string(rune(i))] = 1
	}
	many, err := json.Marshal(Document{Samples: []Sample{{At: 1, Values: values}}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{":                                      "reading samples",
		"[]":                                     "reading samples",
		`{"samples":[{"at":2},{"at":2}]}`:        "not after the one before",
		`{"samples":[{"at":-1}]}`:                "not after the one before",
		`{"samples":[{"at":1,"probesNs":[-5]}]}`: "a request took -5 ns",
		`{"samples":[{"at":1,"pods":{"left":-1}}]}`: "numbers of pods",
		string(many): "too many values",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", text, err, want)
		}
	}
}
