package main

import (
	"slices"
	"testing"
)

func TestDevicesReportTheirIsland(t *testing.T) {
	for index, device := range devices() {
		if want := int64(index / 4); device.Topology.Nodes[0].ID != want {
			t.Errorf("%s: NUMA node %d, want %d", device.ID, device.Topology.Nodes[0].ID, want)
		}
	}
}

func TestPreferredKeepsIslandsWhole(t *testing.T) {
	all := []string{"GPU-7", "GPU-6", "GPU-5", "GPU-4", "GPU-3", "GPU-2", "GPU-1", "GPU-0"}
	cases := []struct {
		name              string
		available, forced []string
		size              int
		want              []string
	}{
		{"empty node", all, nil, 4, []string{"GPU-0", "GPU-1", "GPU-2", "GPU-3"}},
		{"second engine", all[:4], nil, 4, []string{"GPU-4", "GPU-5", "GPU-6", "GPU-7"}},
		{"broken island first", all[:6], nil, 2, []string{"GPU-2", "GPU-3"}},
		{"whole island when the broken one is too small", all[:6], nil, 4, []string{"GPU-4", "GPU-5", "GPU-6", "GPU-7"}},
		{"forced device leads", all, []string{"GPU-5"}, 4, []string{"GPU-4", "GPU-5", "GPU-6", "GPU-7"}},
		{"more than an island", all, nil, 6, []string{"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5"}},
	}
	for _, c := range cases {
		if got := preferred(c.available, c.forced, c.size); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestUnknownIdsAreRefused(t *testing.T) {
	for _, id := range []string{"GPU-8", "GPU--1", "GPU-x", "0", ""} {
		if deviceIndex(id) != -1 {
			t.Errorf("%q was taken for a device", id)
		}
	}
}
