// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// storeOf is what Prometheus would have stored of series given in the notation of promtool's test files, one to a line,
// scraped every 30 seconds from time 0 on. Prometheus' own store is not used: it comes with the clients of three clouds.
func storeOf(t *testing.T, text string) storage.Queryable {
	t.Helper()
	return storeEvery(t, 30*time.Second, text)
}

// storeEvery is storeOf with another interval.
func storeEvery(t *testing.T, interval time.Duration, text string) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{time.Duration(i) * interval, v.Value})
			}
		}
		all = append(all, storage.NewListSeries(name, samples))
	}
	slices.SortFunc(all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			set := &seriesSet{at: -1}
			for _, s := range all {
				if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
					set.Series = append(set.Series, s)
				}
			}
			return set
		},
	}}
}

// seriesSet goes over a list.
type seriesSet struct {
	Series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.Series) }
func (s *seriesSet) At() storage.Series                { return s.Series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sample is one number that was scraped.
type sample struct {
	at    time.Duration
	value float64
}

// The rest is what a sample is asked.
func (s sample) T() int64                    { return s.at.Milliseconds() }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
