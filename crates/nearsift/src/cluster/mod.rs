//! temporary
/// temp
pub fn components(n: usize, links: &[(u32, u32)], ranks: &[u32]) -> Vec<u32> {
    let mut parent: Vec<u32> = (0..n as u32).collect();
    fn find(p: &mut [u32], mut x: u32) -> u32 {
        while p[x as usize] != x {
            p[x as usize] = p[p[x as usize] as usize];
            x = p[x as usize];
        }
        x
    }
    for &(a, b) in links {
        let (a, b) = (find(&mut parent, a), find(&mut parent, b));
        // The better ranked root stays.
        if a != b {
            if ranks[a as usize] < ranks[b as usize] {
                parent[b as usize] = a
            } else {
                parent[a as usize] = b
            }
        }
    }
    (0..n as u32).map(|x| find(&mut parent, x)).collect()
}
/// temp
pub fn star(n: usize, links: &[(u32, u32)], ranks: &[u32]) -> Vec<u32> {
    let mut l: Vec<(u32, u32)> = links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
    l.sort_unstable();
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&d| ranks[d as usize]);
    let mut rep = vec![u32::MAX; n];
    for d in order {
        if rep[d as usize] != u32::MAX {
            continue;
        }
        rep[d as usize] = d;
        let s = l.partition_point(|x| x.0 < d);
        for &(_, o) in l[s..].iter().take_while(|x| x.0 == d) {
            if rep[o as usize] == u32::MAX {
                rep[o as usize] = d;
            }
        }
    }
    rep
}
