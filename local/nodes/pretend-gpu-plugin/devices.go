package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	dp "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resourceName = "nvidia.com/gpu"
	gpuCount     = 8 // p5.48xlarge: 8 x H100
	islandSize   = 4 // GPUs 0-3 hang on NUMA node 0, GPUs 4-7 on NUMA node 1
	idPrefix     = "GPU-"
)

// devices lists the GPUs with the NUMA node that each reports to the Topology Manager.
func devices() []*dp.Device {
	list := make([]*dp.Device, gpuCount)
	for index := range list {
		list[index] = &dp.Device{
			ID:       idPrefix + strconv.Itoa(index),
			Health:   dp.Healthy,
			Topology: &dp.TopologyInfo{Nodes: []*dp.NUMANode{{ID: int64(index / islandSize)}}},
		}
	}
	return list
}

// deviceIndex is the number behind the prefix; -1 for an id that this plugin never gave out.
func deviceIndex(id string) int {
	number, found := strings.CutPrefix(id, idPrefix)
	index, err := strconv.Atoi(number)
	if !found || err != nil || index < 0 || index >= gpuCount {
		return -1
	}
	return index
}

// preferred picks size devices: those the kubelet insists on, then the rest from the island that they are on,
// or from the island with the fewest free devices that still holds all of them, so that whole islands stay whole.
func preferred(available, mustInclude []string, size int) []string {
	byIndex := func(a, b string) int { return cmp.Compare(deviceIndex(a), deviceIndex(b)) }
	chosen := slices.Clone(mustInclude)
	free := slices.DeleteFunc(slices.Clone(available), func(id string) bool { return slices.Contains(chosen, id) })
	slices.SortFunc(free, byIndex)

	var islands [gpuCount / islandSize][]string
	for _, id := range free {
		if index := deviceIndex(id); index >= 0 {
			islands[index/islandSize] = append(islands[index/islandSize], id)
		}
	}
	home := -1
	if len(chosen) > 0 && deviceIndex(chosen[0]) >= 0 {
		home = deviceIndex(chosen[0]) / islandSize
	}
	order := []int{0, 1}
	slices.SortStableFunc(order, func(a, b int) int {
		missing := size - len(chosen)
		rank := func(island int) int {
			switch {
			case island == home:
				return -1
			case len(islands[island]) < missing:
				return gpuCount + 1 // can't hold all of them: last
			default:
				return len(islands[island])
			}
		}
		return cmp.Compare(rank(a), rank(b))
	})
	for _, island := range order {
		for _, id := range islands[island] {
			if len(chosen) < size {
				chosen = append(chosen, id)
			}
		}
	}
	slices.SortFunc(chosen, byIndex)
	return chosen
}
