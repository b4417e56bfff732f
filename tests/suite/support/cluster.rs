use super::{wait_until, Client, Server, Settings};
use redis::cluster::{ClusterClient, ClusterConnection};

const SLOTS: usize = 16_384;

/// Three masters with a third of the slots each, and a replica of each.
pub struct Cluster {
    /// The masters, then the replica of each, in the same order.
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts six servers and waits until every one of them sees a whole cluster.
    pub fn start() -> Self {
        let nodes: Vec<Server> = (0..6).map(|_| Settings::new().cluster().start()).collect();
        let mut clients: Vec<Client> = nodes.iter().map(Server::connect).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            client.run::<()>(&format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
            client.run::<()>(&format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].port()));
        }
        for (third, client) in clients[..3].iter_mut().enumerate() {
            let slots = third * SLOTS / 3..(third + 1) * SLOTS / 3;
            let words: Vec<String> = slots.map(|slot| slot.to_string()).collect();
            client.run::<()>(&format!("CLUSTER ADDSLOTS {}", words.join(" ")));
        }
        for client in &mut clients {
            wait_until("every node knows every other", || {
                client.run::<String>("CLUSTER NODES").lines().count() == 6
            });
        }
        let (masters, replicas) = clients.split_at_mut(3);
        for (master, replica) in masters.iter_mut().zip(replicas) {
            let id: String = master.run("CLUSTER MYID");
            wait_until("the replica accepts its master", || {
                replica
                    .try_send::<()>(&[b"CLUSTER", b"REPLICATE", id.as_bytes()])
                    .is_ok()
            });
        }
        for replica in &mut clients[3..] {
            wait_until("the replica is in sync", || {
                replica.info("replication", "master_link_status") == "up"
            });
        }
        for client in &mut clients {
            wait_until("every node knows and reaches the others", || {
                let nodes: String = client.run("CLUSTER NODES");
                client
                    .run::<String>("CLUSTER INFO")
                    .contains("cluster_state:ok")
                    && nodes.matches("slave ").count() == 3
                    && !nodes.contains("disconnected")
            });
        }
        Self { nodes }
    }

    /// A cluster client that finds its nodes by itself.
    pub fn connect(&self) -> ClusterConnection {
        let urls = self.nodes[..3]
            .iter()
            .map(|node| format!("redis://127.0.0.1:{}", node.port()));
        ClusterClient::new(urls).unwrap().get_connection().unwrap()
    }

    /// The masters as they were at the start.
    pub fn masters(&self) -> &[Server] {
        &self.nodes[..3]
    }

    /// The master that serves a slot.
    pub fn master_of(&self, slot: usize) -> &Server {
        &self.nodes[(0..3).find(|third| slot < (third + 1) * SLOTS / 3).unwrap()]
    }
}

/// The slot of a key, as a server computes it.
pub fn slot(client: &mut Client, key: &str) -> usize {
    client.run(&format!("CLUSTER KEYSLOT {key}"))
}
