//! One connection to one server.

use crate::failure::Failure;
use crate::target::{Address, Target};
use redis::io::tcp::TcpSettings;
use redis::{Client, Cmd, Connection, RedisResult, Value};

/// Commands that are sent together, in the wire format of Redis.
#[derive(Clone, Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    commands: usize,
}

impl Requests {
    pub(crate) fn one(command: &Cmd) -> Requests {
        let mut requests = Requests::default();
        requests.add(command);
        requests
    }

    /// Returns the number of commands. Each gets one answer.
    pub(crate) const fn commands(&self) -> usize {
        self.commands
    }

    pub(crate) fn add(&mut self, command: &Cmd) {
        command.write_packed_command(&mut self.bytes);
        self.commands += 1;
    }
}

/// A connection to one server, which answers requests in their order.
pub(crate) struct Link {
    connection: Connection,
    /// The server's identifier of this connection, by which a command on another connection can end it.
    number: i64,
}

impl Link {
    pub(crate) fn open(target: &Target, address: &Address) -> Result<Link, Failure> {
        let limit = target.exchange();
        // The kernel gives up unacknowledged data after the same time, so that no request arrives after we gave it up.
        let settings = TcpSettings::default().set_nodelay(true).set_user_timeout(limit);
        let info = target.at(address).set_tcp_settings(settings);
        let client = match &target.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
            None => Client::open(info),
        };
        let connect = || {
            let connection = client?.get_connection_with_timeout(limit)?;
            connection.set_read_timeout(Some(limit))?;
            connection.set_write_timeout(Some(limit))?;
            Ok(connection)
        };
        let connection = connect().map_err(|error| Failure::of_library(&error, target))?;
        let mut link = Link { connection, number: 0 };
        let answers = link.exchange(&[&Requests::one(redis::cmd("CLIENT").arg("ID"))], target)?;
        match answers[..] {
            [Value::Int(number)] => Ok(Link { number, ..link }),
            _ => Err(Failure::Permanent("CLIENT ID has no number".into())),
        }
    }

    pub(crate) const fn number(&self) -> i64 {
        self.number
    }

    /// Sends all requests, then reads all answers. After [`Failure::NoAnswer`] the link must not be used again.
    pub(crate) fn exchange(
        &mut self,
        requests: &[&Requests],
        target: &Target,
    ) -> Result<Vec<Value>, Failure> {
        self.send(requests, target)?;
        let answers = self.receive(requests.iter().map(|it| it.commands).sum(), target)?;
        match Failure::among(&answers, target) {
            Some(failure) => Err(failure),
            None => Ok(answers),
        }
    }

    /// Sends requests. Their answers follow those of the requests sent before. After an error the link must not be used
    /// again.
    pub(crate) fn send(&mut self, requests: &[&Requests], target: &Target) -> Result<(), Failure> {
        for requests in requests.iter().filter(|it| it.commands > 0) {
            let sent = self.connection.send_packed_command(&requests.bytes);
            sent.map_err(|error| Failure::of_library(&error, target))?;
        }
        Ok(())
    }

    /// Reads the answers to the next `commands` commands, each of which may be an error of the server. After an error
    /// of this function the link must not be used again.
    pub(crate) fn receive(&mut self, commands: usize, target: &Target) -> Result<Vec<Value>, Failure> {
        let answers = (0..commands).map(|_| self.connection.recv_response());
        let answers: RedisResult<Vec<Value>> = answers.collect();
        answers.map_err(|error| Failure::of_library(&error, target))
    }
}
